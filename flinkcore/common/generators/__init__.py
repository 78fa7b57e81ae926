"""Watermark generators that suppliers of users make. Private."""
