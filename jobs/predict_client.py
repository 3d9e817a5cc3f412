#!/usr/bin/env python3
"""A client of the prediction service of `convoy share`: sends images over its Unix socket.

predict_client.py SOCKET IMAGE...                                  sends every image once and prints the replies, one a line
predict_client.py SOCKET IMAGE... --rate R --seconds S [--poisson] sends a load: R requests a second, of the images in turn

The last line that it prints is a JSON object: requests, answered, errors, seconds and latency_ms (p50, p95, p99, max) as the client
sees them. A request of a load counts from when it was due, so the time that it could not be sent counts, too. The exit status is 1
if a reply is an error or is missing. --latencies FILE writes a line for each request: when it was due, in seconds, and its latency
in ms.
"""
import argparse
import base64
import json
import math
import os
import random
import socket
import sys
import threading
import time


def number_above_zero(text):
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"found {text}, expected a number above 0")
    return value


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("socket")
    parser.add_argument("images", nargs="+", metavar="image")
    parser.add_argument("--bytes", action="store_true", help="send the content of the images instead of their paths")
    parser.add_argument("--top", type=int, metavar="K", help="classes of an answer")
    parser.add_argument("--rate", type=number_above_zero, metavar="R", help="requests a second")
    parser.add_argument("--seconds", type=number_above_zero, metavar="S", help="length of the load")
    parser.add_argument("--poisson", action="store_true", help="random times between requests, as of many independent clients")
    parser.add_argument("--burst", type=int, default=0, metavar="N", help="N more requests at once in the middle of the load")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of --poisson")
    parser.add_argument("--latencies", metavar="FILE", help="write the latency of every request")
    flags = parser.parse_args()
    if (flags.rate is None) != (flags.seconds is None):
        parser.error("found one of --rate and --seconds, expected both or neither")
    if flags.rate is None and (flags.poisson or flags.burst):
        parser.error("--poisson and --burst: found no --rate, expected one")
    return flags


def due_times(flags):
    """Returns when the requests of a load are due, in seconds from its begin."""
    draw, times, time_due = random.Random(flags.seed), [], 0.0
    while True:
        time_due += draw.expovariate(flags.rate) if flags.poisson else 1 / flags.rate
        if time_due >= flags.seconds:
            return sorted(times + flags.burst * [flags.seconds / 2])
        times.append(time_due)


def fields_of(image, flags):
    """Returns the fields of a request but its id, as the inner part of a JSON object."""
    fields = {"image": os.path.abspath(image)}
    if flags.bytes:
        with open(image, "rb") as file:
            fields = {"bytes": base64.b64encode(file.read()).decode()}
    if flags.top is not None:
        fields["top"] = flags.top
    return json.dumps(fields)[1:-1]


class Replies(threading.Thread):
    """Reads replies and notes when they came."""

    def __init__(self, connection, count):
        super().__init__(daemon=True)
        self.connection, self.replies, self.came = connection, [None] * count, [None] * count
        self.refusal = None  # an error of the service that belongs to no request

    def run(self):
        with self.connection.makefile("rb") as lines:
            for line in lines:
                now, reply = time.monotonic(), json.loads(line)
                if reply["id"] is None:
                    self.refusal = reply["error"]
                else:
                    self.replies[reply["id"]], self.came[reply["id"]] = reply, now


def percentile(ordered, share):
    """Returns the smallest value that at least `share` of all do not exceed."""
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else None


def main():
    flags = arguments()
    due = due_times(flags) if flags.rate is not None else [0.0] * len(flags.images)
    requests = [fields_of(image, flags) for image in flags.images]
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(flags.socket)
    except OSError as error:
        sys.exit(f"predict_client.py: {flags.socket}: cannot connect: {error.strerror or error}")
    reader = Replies(connection, len(due))
    reader.start()
    begin = time.monotonic()
    for number, at in enumerate(due):
        if (early := begin + at - time.monotonic()) > 0:
            time.sleep(early)
        # Without a rate a request has no due time, so its latency counts from the time when it is
        # sent.
        due[number] = at if flags.rate is not None else time.monotonic() - begin
        connection.sendall(f'{{"id": {number}, {requests[number % len(requests)]}}}\n'.encode())
    connection.shutdown(socket.SHUT_WR)
    reader.join()
    seconds = time.monotonic() - begin

    answered = [reply is not None and "error" not in reply for reply in reader.replies]
    latencies = [1000 * (came - begin - at) for came, at, good in zip(reader.came, due, answered) if good]
    if flags.rate is None:
        for reply in reader.replies:
            print(json.dumps(reply))
    if flags.latencies:
        with open(flags.latencies, "w") as file:
            for came, at in zip(reader.came, due):
                file.write(f"{at:.6f} {'nan' if came is None else 1000 * (came - begin - at):.3f}\n")
    ordered = sorted(latencies)
    print(json.dumps({
        "requests": len(due), "answered": sum(answered), "errors": len(due) - sum(answered), "seconds": round(seconds, 3),
        "latency_ms": {name: None if not ordered else round(percentile(ordered, share), 3)
                       for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1))}}))
    if reader.refusal is not None:
        print(f"predict_client.py: {flags.socket}: {reader.refusal}", file=sys.stderr)
    return 0 if all(answered) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, json.JSONDecodeError) as error:
        sys.exit(f"predict_client.py: {error}")
