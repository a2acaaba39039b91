"""What a person looks at: `figures`, pure functions of frames, and `dashboard`, the live widget.

A report needs no widget; a widget reads the log alone.
"""
