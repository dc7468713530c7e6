"""A small HTTP/1.1 client for streamed answers, made for little work per token.

``response`` cuts bytes into answers, ``connection`` is one socket with its limits and backpressure, ``client`` keeps
connections and sends requests, ``errors`` names what goes wrong. It follows no redirects, knows no cookies or proxies,
and decodes nothing.
"""
