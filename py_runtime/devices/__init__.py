"""The devices that models run on: opened once, shared by all, replaced when they are lost."""
