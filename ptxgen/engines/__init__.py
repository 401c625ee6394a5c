"""Extensions of inference engines, which serve a model with the bits of its trainer."""
