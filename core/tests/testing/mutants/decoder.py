import torch

from oasr.interfaces.decoder import FrameSynchronousDecoder, LabelSynchronousDecoder, Spelling


class Neighbourly(LabelSynchronousDecoder):
    """Looks at the other rows."""

    def __init__(self, config):
        pass

    def advance(self, logits, generated, counts, states):
        return (logits - 0.9 * logits.mean(dim=0)).argmax(dim=-1)


class InPlace(LabelSynchronousDecoder):
    """Alters what it was given, and does not say which head it needs."""

    def __init__(self, config):
        pass

    def advance(self, logits, generated, counts, states):
        return logits.sub_(logits.amax()).argmax(dim=-1)


class SharedDice(LabelSynchronousDecoder):
    """Draws all rows from one generator."""

    def __init__(self, config):
        pass

    def start(self, options, device):
        return options.temperature

    def advance(self, logits, generated, counts, states):
        if not any(states):
            return logits.argmax(dim=-1)
        return torch.multinomial(logits.softmax(dim=-1), 1)[:, 0]


class Amnesiac(FrameSynchronousDecoder):
    """Greedy search over CTC that forgets the last token of a chunk."""

    head = "ctc"

    def __init__(self, config):
        pass

    def start(self, head, options, tokenizer):
        return []

    def advance(self, head, encoded, rows):
        best = head.log_probs(encoded.frames).argmax(dim=-1)
        for row, tokens, length in zip(rows, best.tolist(), self.lengths(encoded), strict=True):
            age = sum(frames for frames, _ in row)
            said = [
                (token, age + frame)
                for frame, (token, before) in enumerate(zip(tokens[:length], [0, *tokens], strict=False))
                if token not in (0, before)
            ]
            row.append((length, said))

    def lengths(self, encoded):
        return encoded.lengths.tolist()

    def spellings(self, row):
        tokens, frames = (
            zip(*(each for _, said in row for each in said), strict=True) if any(s for _, s in row) else ((), ())
        )
        return [Spelling(tokens, frames, (0.0,) * len(tokens), 0.0)]


class HearsPadding(Amnesiac):
    """And reads on behind the end of a row."""

    def lengths(self, encoded):
        return [encoded.frames.shape[1]] * len(encoded.lengths)
