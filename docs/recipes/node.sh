#!/usr/bin/env bash
# Slots, on each of the other hosts: node.sh HEAD [SLOTS]; with several GPUs once a GPU: CUDA_VISIBLE_DEVICES=0 node.sh HEAD 3
set -eu
tls=(--tls-ca-file "$HOME/keys/cert.pem" --tls-cert "$HOME/keys/cert.pem" --tls-key "$HOME/keys/key.pem")
export DASK_DISTRIBUTED__WORKER__DAEMON=False # trials may start processes of their own
name=$(hostname)${CUDA_VISIBLE_DEVICES:+-gpu$CUDA_VISIBLE_DEVICES}
exec dask worker "tls://$1:8786" "${tls[@]}" --nthreads 1 --nworkers "${2:-4}" --name "$name" --no-dashboard
