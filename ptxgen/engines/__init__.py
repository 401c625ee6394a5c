"""Extensions of inference engines, and the layers that they are made of."""
