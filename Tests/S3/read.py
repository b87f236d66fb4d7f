#!/usr/bin/env python3
"""Reads a fleet's objects from S3-compatible storage, by Documentation/PackedCarrier.md alone, with Amazon's own client.

    read.py ENDPOINT BUCKET PREFIX < ACCESS_KEY      (its name and its secret, separated by a space)

Prints a JSON object: the bytes of each object in hexadecimal, by name.
"""

import json
import sys

import boto3


class Reader:
    def __init__(self, data):
        self.data, self.position = data, 0

    def take(self, count):
        assert self.position + count <= len(self.data), "truncated"
        self.position += count
        return self.data[self.position - count : self.position]

    def number(self, count):
        return int.from_bytes(self.take(count), "big")

    def name(self):
        return self.take(self.number(1)).decode("ascii")

    def entry(self):
        """The name, the number of the commit, and the bytes; None for a removed object."""
        name, number = self.name(), self.number(8)
        return name, number, self.take(self.number(4)) if self.number(1) else None

    @property
    def is_at_end(self):
        return self.position == len(self.data)


def objects(get):
    root = Reader(get("root"))
    assert root.number(1) == 1, "another format"
    root.take(8)
    number, forgotten, _ = root.number(8), root.number(8), root.number(8)
    assert forgotten <= number
    for _ in range(root.number(1)):
        root.take(8)
    found = {}

    def add(name, commit, content):
        assert commit <= number
        if name not in found or found[name][0] < commit:
            found[name] = commit, content

    for _ in range(root.number(1)):
        run, entry_count, removed_count = root.number(8), root.number(4), root.number(4)
        entries = []
        for _ in range(root.number(4)):
            part, size = "parts/" + root.take(16).hex(), root.number(4)
            sections = [(root.name(), root.name(), root.number(4)) for _ in range(root.number(4))]
            pack = Reader(get(part))
            assert len(pack.data) == size == sum(count for _, _, count in sections)
            for first, last, count in sections:
                section = Reader(pack.take(count))
                start = len(entries)
                while not section.is_at_end:
                    entries.append(section.entry())
                assert (entries[start][0], entries[-1][0]) == (first, last)
        names = [name for name, _, _ in entries]
        assert names == sorted(set(names)) and len(names) == entry_count
        assert sum(content is None for _, _, content in entries) == removed_count
        for name, commit, content in entries:
            add(name, commit or run, content)
    for _ in range(root.number(4)):
        name, commit, part, size = root.name(), root.number(8), "parts/" + root.take(16).hex(), root.number(4)
        content = get(part)
        assert len(content) == size
        add(name, commit, content)
    for _ in range(root.number(4)):
        root.take(24)
    for _ in range(root.number(4)):
        add(*root.entry())
    assert root.is_at_end
    return {name: content.hex() for name, (_, content) in found.items() if content is not None}


def main():
    endpoint, bucket, prefix = sys.argv[1:]
    name, secret = sys.stdin.read().split()
    client = boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id=name, aws_secret_access_key=secret, region_name="us-east-1"
    )

    def get(key):
        return client.get_object(Bucket=bucket, Key=f"{prefix}/{key}")["Body"].read()

    json.dump(objects(get), sys.stdout)


if __name__ == "__main__":
    main()
