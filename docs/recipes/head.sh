#!/usr/bin/env bash
# Dask's scheduler, on one host: head.sh. Who can reach it can run code on its workers: so it checks certificates (keys.sh).
set -eu
tls=(--tls-ca-file "$HOME/keys/cert.pem" --tls-cert "$HOME/keys/cert.pem" --tls-key "$HOME/keys/key.pem")
exec dask scheduler --protocol tls "${tls[@]}" --interface ib0 --port 8786 --no-dashboard
