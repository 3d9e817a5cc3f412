// `convoy bench …`: measures the parts of the program. Each part has a verb of its own after
// `bench`, and each of these verbs has a file in this folder.
#include "app/commands/bench/collectives.h"
#include "app/commands/bench/concurrency.h"
#include "app/commands/bench/conv.h"
#include "app/commands/bench/decode.h"
#include "app/commands/bench/gemm.h"
#include "app/commands/bench/loader.h"
#include "app/commands/bench/memory.h"
#include "app/commands/bench/step.h"
#include "app/commands/commands.h"

namespace convoy::app {

void add_bench_command(CLI::App& app) {
  auto* bench = app.add_subcommand("bench", "Measure parts of Convoy on this machine");
  bench->require_subcommand(1);
  add_bench_collectives(*bench);
  add_bench_concurrency(*bench);
  add_bench_conv(*bench);
  add_bench_decode(*bench);
  add_bench_gemm(*bench);
  add_bench_loader(*bench);
  add_bench_memory(*bench);
  add_bench_step(*bench);
}

}  // namespace convoy::app
