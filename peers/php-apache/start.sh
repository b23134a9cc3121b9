#!/bin/bash
# Runs Apache with the configuration in folder $1. Ends it the hard way: the orderly end of 400
# processes with PHP inside takes them seconds, and they have nothing to save.
set -m # a process group of its own, so that a signal to ours is left to us
build/apache2 -D FOREGROUND -f "$1/apache.conf" &
trap 'kill -KILL -- -$!' TERM INT
wait $!
