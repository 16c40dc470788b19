"""Tests of the CPU as a device."""
