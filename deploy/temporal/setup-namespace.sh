#!/bin/sh
# Makes the namespace and its search attributes. May run again at any time.
set -eu
namespace=${TEMPORAL_NAMESPACE:-default}
retention=${TEMPORAL_RETENTION:-168h}

until temporal operator cluster health >/dev/null 2>&1; do
  echo "waiting for $TEMPORAL_ADDRESS"
  sleep 2
done

temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1 ||
  temporal operator namespace create --namespace "$namespace" --retention "$retention"

# A new namespace is not known to every part of the server at once.
known=
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
  if known=$(temporal operator search-attribute list --namespace "$namespace" 2>/dev/null); then break; fi
  sleep 2
done
for name in LfExperiment LfAction LfOutcome; do
  case $known in
    *"$name"*) ;;
    *) temporal operator search-attribute create --namespace "$namespace" --name "$name" --type Keyword ;;
  esac
done
