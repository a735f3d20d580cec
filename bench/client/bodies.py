#!/usr/bin/python3
"""Client for large bodies, in a process of its own: sends files with sendfile, so that it costs next to nothing, and takes
bodies off the wire without copying them. One thread a connection; the clock runs from the moment all are connected.

Reads one job as JSON from stdin:
  {"port": N, "connections": [[{"head": "...", "send": {"kind": "file", "path": "...", "offset": N, "bytes": N}}, ...], ...]}
where "send" may also be {"kind": "single-bytes", "bytes": N} (chunked, one byte a chunk) or null.
Writes {"seconds": S, "cpuSeconds": S, "answers": [[{"status": N, "head": "...", "bodyBytes": N}, ...], ...]}.
"""
import json
import os
import resource
import socket
import sys
import threading
import time

PIECE = 1 << 20


def send_body(sock, send):
    if send is None:
        return
    if send["kind"] == "single-bytes":
        left = send["bytes"]
        while left > 0:
            count = min(left, 16384)
            sock.sendall(b"1\r\nx\r\n" * count)
            left -= count
        sock.sendall(b"0\r\n\r\n")
        return
    with open(send["path"], "rb") as file:
        at, end = send["offset"], send["offset"] + send["bytes"]
        while at < end:
            sent = os.sendfile(sock.fileno(), file.fileno(), at, min(end - at, PIECE))
            if sent == 0:
                raise OSError("the source file is too short")
            at += sent


BUFFERS = threading.local()


def drop(sock, left):
    # With MSG_TRUNC the kernel drops the bytes of a TCP stream instead of copying them.
    if not hasattr(BUFFERS, "view"):
        BUFFERS.view = memoryview(bytearray(PIECE))
    return sock.recv_into(BUFFERS.view, min(left, PIECE), socket.MSG_TRUNC)


def read_answer(sock):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            raise OSError("the connection ended before an answer came")
        data += piece
        # 100 Continue and other interim answers say nothing here.
        while data.startswith(b"HTTP/1.1 1") and b"\r\n\r\n" in data:
            data = data.split(b"\r\n\r\n", 1)[1]
    head, rest = data.split(b"\r\n\r\n", 1)
    text = head.decode("latin-1")
    length = 0
    for line in text.split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    left = length - len(rest)
    while left > 0:
        count = drop(sock, left)
        if count <= 0:
            raise OSError("the body ended early")
        left -= count
    return {"status": int(text.split(" ", 2)[1]), "head": text, "bodyBytes": length}


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    job = json.load(sys.stdin)
    plans = job["connections"]
    answers = [[] for _ in plans]
    ended = [0.0 for _ in plans]
    faults = []
    clock = {}

    def start_clock():
        clock["wall"] = time.perf_counter()
        clock["cpu"] = cpu_seconds()

    ready = threading.Barrier(len(plans), action=start_clock)

    def run(index):
        try:
            sock = socket.create_connection(("127.0.0.1", job["port"]))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as fault:
            faults.append(str(fault))
            ready.abort()
            return
        try:
            ready.wait()
            for request in plans[index]:
                sock.sendall(request["head"].encode("latin-1"))
                try:
                    send_body(sock, request["send"])
                except (BrokenPipeError, ConnectionResetError):
                    pass  # an early answer says why
                answers[index].append(read_answer(sock))
            ended[index] = time.perf_counter()
        except (OSError, threading.BrokenBarrierError) as fault:
            faults.append(repr(fault))
        finally:
            sock.close()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(plans))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        sys.exit("; ".join(sorted(set(faults))))
    result = {"seconds": max(ended) - clock["wall"], "cpuSeconds": cpu_seconds() - clock["cpu"], "answers": answers}
    json.dump(result, sys.stdout)


main()
