#!/usr/bin/env bash
# Checks that files include only files of their own layer and of lower layers. An arrow points to
# the layers that a layer may include:
#   app -> comm, data, partition, kernels; comm and data -> kernels/device
#   commands -> sharing -> training -> model_parallel; commands -> prediction -> model_parallel
#   model_parallel -> concurrency -> timing -> execute -> compile -> graph -> model -> files of app
#     itself; within them, the folders graph/passes, training/checkpoint, training/report and
#     commands/bench are layers of their own
# In these chains a layer may also include the layers further to the right. comm/mpi and comm/nccl
# do not know each other. Of convolutions and products, other operations see only the files next to
# conv2d.h and gemm.h: their folders hold device code and its measurements. Prints every include
# that breaks this, and then ends with status 1.
set -euo pipefail
cd "$(dirname "$0")/.."

grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' \
  --include='*.cpp' --include='*.h' --include='*.cu' --include='*.cuh' app comm data partition kernels |
  awk '
    BEGIN {
      # "a/b" stands for a folder with all that is in it, "a/b/." for the files directly in it, and
      # "*" for any one folder. The longest name that fits a file is its layer.
      may["partition"] = "partition"
      operations = " kernels/*/."
      common = " kernels/gemm/common" operations
      may["kernels"] = operations
      may["kernels/no_cuda.cpp"] = "kernels"
      may["kernels/linear"] = common
      may["kernels/gemm/common"] = common
      may["kernels/gemm/simple"] = "kernels/gemm/simple" common
      may["kernels/gemm/mma_sync"] = "kernels/gemm/mma_sync" common
      may["kernels/gemm/wgmma"] = "kernels/gemm/wgmma " may["kernels/gemm/mma_sync"]
      may["kernels/gemm/bench"] = "kernels/gemm/bench" common
      may["kernels/gemm/cuda"] = "kernels/gemm/cuda " may["kernels/gemm/bench"]
      may["kernels/conv2d/bench"] = "kernels/conv2d/bench " may["kernels/gemm/bench"]
      may["kernels/conv2d/cuda"] = "kernels/conv2d/cuda kernels/gemm/simple kernels/gemm/mma_sync " may["kernels/conv2d/bench"]
      may["kernels/conv2d/im2col"] = "kernels/conv2d/im2col kernels/conv2d/cuda " may["kernels/gemm/wgmma"]
      may["data"] = "data kernels/device"
      shared = " comm/. kernels/device"
      may["comm"] = "comm/nccl comm/placement comm/watchdog" shared
      may["comm/no_cuda.cpp"] = "comm/benchmark " may["comm"]
      may["comm/mpi"] = "comm/mpi" shared
      may["comm/nccl"] = "comm/nccl comm/placement" shared
      may["comm/benchmark"] = "comm/benchmark comm/nccl" shared
      may["comm/placement"] = "comm/placement comm/watchdog" shared
      may["comm/watchdog"] = "comm/watchdog" shared
      may["app"] = "app/."
      may["app/model"] = "app/model app/. kernels"
      may["app/graph"] = "app/graph " may["app/model"]
      may["app/graph/passes"] = may["app/graph"]
      may["app/graph"] = "app/graph/. app/graph/ops " may["app/model"]
      may["app/compile"] = "app/compile comm data partition " may["app/graph/passes"]
      may["app/execute"] = "app/execute " may["app/compile"]
      may["app/timing"] = "app/timing " may["app/execute"]
      may["app/concurrency"] = "app/concurrency " may["app/timing"]
      may["app/model_parallel"] = "app/model_parallel " may["app/concurrency"]
      may["app/prediction"] = "app/prediction " may["app/model_parallel"]
      may["app/training"] = "app/training " may["app/model_parallel"]
      may["app/training/checkpoint"] = "app/training/checkpoint " may["app/model_parallel"]
      may["app/training/report"] = "app/training/report app/training/dataset.h app/training/train_options.h " may["app/model_parallel"]
      may["app/sharing"] = "app/sharing " may["app/training"]
      may["app/commands"] = "app/commands app/prediction " may["app/sharing"]
      may["app/commands/bench"] = may["app/commands"]
      may["app/commands"] = "app/commands/. app/prediction " may["app/sharing"]
      may["app/main.cpp"] = "app/commands"
      generated["app/training/report/build_info.cpp"] = "build_info_values.h"
    }
    # Returns the layer of a file.
    function part(file) {
      while (!(file in may) && sub("/[^/]*$", "", file)) {}
      return file
    }
    function fits(file, allowed, end) {
      end = sub(/\.$/, "[^/]+$", allowed) ? "" : "(/|$)"
      sub(/\*/, "[^/]+", allowed)
      return file ~ ("^" allowed end)
    }
    {
      colon = index($0, ":")
      file = substr($0, 1, colon - 1)
      split($0, quoted, "\"")
      included = quoted[2]
      if (generated[file] == included) next
      count = split(may[part(file)], allowed, " ")
      for (i = 1; i <= count; ++i)
        if (fits(included, allowed[i])) next
      printf "%s\n    %s may include %s\n", $0, part(file), may[part(file)]
      wrong = 1
    }
    END { exit wrong }'
