"""The seams: one small abstract class per kind of component."""
