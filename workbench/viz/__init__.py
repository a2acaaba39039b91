"""What a person looks at: `figures`, pure functions of frames, and `dashboard`, the live widget."""
