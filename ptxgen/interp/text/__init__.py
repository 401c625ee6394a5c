"""Reading PTX: the syntax tree and its parser, and the flow of control through a kernel."""
