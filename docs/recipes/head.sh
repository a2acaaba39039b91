#!/usr/bin/env bash
# Dask's scheduler, on one host: head.sh. Who can reach it can run code on its workers: so it checks certificates (keys.sh).
set -eu
tls=DASK_DISTRIBUTED__COMM__TLS
export ${tls}__CA_FILE="$HOME/keys/cert.pem" ${tls}__SCHEDULER__CERT="$HOME/keys/cert.pem" ${tls}__SCHEDULER__KEY="$HOME/keys/key.pem"
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=True
exec dask scheduler --protocol tls --interface ib0 --port 8786 --no-dashboard
