"""From a recorded graph to native code.

The way: simplify (graph to graph) -> schedule (equations to loop nests) -> fuse (merge nests, contract temporaries) ->
plan (buffers) -> pipeline (program, key, machine code). `program` holds the loop IR that the stages speak.
"""
