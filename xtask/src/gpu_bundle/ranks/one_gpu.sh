#!/bin/sh
# Starts a program as one of several ranks that share the first GPU. NCCL refuses that for ranks of one host, so every rank is given another host; the data then goes
# through sockets.
export KILN_LOCAL_RANK=0
export NCCL_HOSTID="kiln-rank-$KILN_RANK"
exec "$@"
