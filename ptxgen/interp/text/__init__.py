"""PTX text: syntax tree and parser, forms of instructions, control flow of a kernel."""
