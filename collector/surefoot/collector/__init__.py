"""Receives OTLP, keeps it on disk before it says so, and hands sealed segments on. Imports no other room."""
