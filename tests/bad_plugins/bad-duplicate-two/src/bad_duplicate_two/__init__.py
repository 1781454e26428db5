"""Claims a component name that another distribution claims too."""
