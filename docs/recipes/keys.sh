#!/usr/bin/env bash
# Certificates for Dask in ~/keys, which scheduler, workers and client check: once, in a home directory that all hosts share.
set -eu
umask 077
mkdir -p "$HOME/keys"
openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj "/CN=$USER" -keyout "$HOME/keys/key.pem" -out "$HOME/keys/cert.pem"
