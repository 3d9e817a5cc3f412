#!/usr/bin/env bash
# Checks that files include only files of their own layer and of lower layers. An arrow points to
# the layers that a layer may include:
#   app -> comm, data, partition, kernels; comm and data -> kernels/device
#   commands -> sharing -> training -> model_parallel; commands -> prediction -> model_parallel
#   model_parallel -> concurrency -> timing -> execute -> compile -> graph -> model -> files of app
#     itself
# In these chains a layer may also include the layers further to the right. Prints every include
# that breaks this, and then ends with status 1.
set -euo pipefail
cd "$(dirname "$0")/.."

grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' \
  --include='*.cpp' --include='*.h' --include='*.cu' --include='*.cuh' app comm data partition kernels |
  awk '
    BEGIN {
      may["partition"] = "partition"
      may["kernels"] = "kernels"
      may["data"] = "data kernels/device"
      may["comm"] = "comm kernels/device"
      may["app"] = "app"
      may["app/model"] = "app/model app kernels"
      may["app/graph"] = "app/graph " may["app/model"]
      may["app/compile"] = "app/compile comm data partition " may["app/graph"]
      may["app/execute"] = "app/execute " may["app/compile"]
      may["app/timing"] = "app/timing " may["app/execute"]
      may["app/concurrency"] = "app/concurrency " may["app/timing"]
      may["app/model_parallel"] = "app/model_parallel " may["app/concurrency"]
      may["app/prediction"] = "app/prediction " may["app/model_parallel"]
      may["app/training"] = "app/training " may["app/model_parallel"]
      may["app/sharing"] = "app/sharing " may["app/training"]
      may["app/commands"] = "app/commands app/prediction " may["app/sharing"]
      may["app/main.cpp"] = "app/commands"
      generated["app/training/report/build_info.cpp"] = "build_info_values.h"
    }
    # Returns the layer of a file: app/FOLDER, app for the files of app itself, else the top folder.
    function part(file, words, depth) {
      depth = split(file, words, "/")
      if (words[1] == "app" && (depth > 2 || file in may)) return words[1] "/" words[2]
      return words[1]
    }
    {
      colon = index($0, ":")
      file = substr($0, 1, colon - 1)
      split($0, quoted, "\"")
      included = quoted[2]
      if (generated[file] == included) next
      count = split(may[part(file)], allowed, " ")
      for (i = 1; i <= count; ++i)
        if (allowed[i] == part(included) || index(included, allowed[i] "/") == 1 && allowed[i] != "app") next
      printf "%s\n    %s may include %s\n", $0, part(file), may[part(file)]
      wrong = 1
    }
    END { exit wrong }'
