from oasr.tokenizers.huggingface import HuggingFaceTokenizer


class Hasty(HuggingFaceTokenizer):
    """Shows each id on its own."""

    def stream(self):
        return _Stream(self)


class _Stream:
    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def push(self, ids):
        return self._tokenizer.decode(ids)

    def finish(self):
        return ""
