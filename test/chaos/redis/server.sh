#!/bin/sh
# Starts the server so that a write beyond its limit on the size of files fails, as on a full disk, instead of ending it.
trap '' XFSZ
exec "$CHAOS_REDIS_SERVER" "$@"
