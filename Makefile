# Thin wrappers over the lines in the README.

VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint

demo: $(VENV)
	$(BIN)/python -m pip install -q -r requirements/demo.txt
	$(BIN)/oasr transcribe examples/hello.wav

test: $(VENV)
	$(BIN)/python -m pip install -q -r requirements/dev.txt
	$(BIN)/python -m pytest

lint: $(VENV)
	$(BIN)/python -m pip install -q -r requirements/dev.txt
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

$(VENV):
	python3 -m venv $(VENV)
