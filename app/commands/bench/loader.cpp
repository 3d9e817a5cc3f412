#include "app/commands/bench/loader.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/commands/commands.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/json_text.h"
#include "app/training/train_options.h"
#include "data/loader/loader.h"
#include "data/store/store.h"
#include "data/synthetic/random_images.h"

namespace convoy::app {
namespace {

struct Flags {
  std::string data = "synthetic", augment = "crop,flip", output = "images";
  int size = 32, crop = 0, batch = 128, threads = 0;
  double seconds = 3;
  bool json = false;
};

data::Augmentation augmentation_of(const std::string& text) {
  try {
    return data::parse_augmentation(text);
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("--augment: {}", error.what()));
  }
}

struct Measurement {
  // Images per second: over all the time, and the least and the greatest over its windows.
  double images_per_second = 0, slowest = 0, fastest = 0;
  // Megabytes of batches per second.
  double megabytes_per_second = 0;
  // Processor time of all threads per image, in microseconds.
  double cpu_us = 0;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Takes batches from the loader as fast as they come. Measures the rate in several windows of time,
// so that its spread is known.
Measurement measure(data::Loader& loader, double seconds) {
  constexpr int kWindows = 5;
  for (int i = 0; i < 8; ++i) loader.next();
  std::vector<double> rates;
  double bytes = 0, all_images = 0, all_seconds = 0;
  const double cpu = cpu_seconds();
  for (int window = 0; window < kWindows; ++window) {
    std::int64_t images = 0;
    const auto start = std::chrono::steady_clock::now();
    std::chrono::duration<double> elapsed{};
    while (elapsed.count() < seconds / kWindows) {
      const auto batch = loader.next();
      images += batch->valid;
      bytes += batch->cuts != nullptr
                   ? static_cast<double>(batch->cut_bytes)
                   : static_cast<double>(batch->valid * batch->shape.bytes()) * sizeof(float);
      elapsed = std::chrono::steady_clock::now() - start;
    }
    rates.push_back(static_cast<double>(images) / elapsed.count());
    all_images += static_cast<double>(images);
    all_seconds += elapsed.count();
  }
  std::ranges::sort(rates);
  return {all_images / all_seconds, rates.front(), rates.back(), bytes / all_seconds / 1e6,
          (cpu_seconds() - cpu) / all_images * 1e6};
}

void run(const Flags& flags) {
  std::shared_ptr<const data::ImageSet> set;
  data::LoaderOptions options;
  if (data_source(flags.data) == DataSource::synthetic) {
    set = std::make_shared<data::RandomImages>(data::ImageShape{flags.size, flags.size, 3}, 10, 50000, 1);
    options.mean = options.std = {0.5f, 0.5f, 0.5f};
  } else {
    const data::Store store(flags.data);
    set = store.split(data::Split::train);
    options.mean = store.info().mean;
    options.std = store.info().std;
  }
  options.global_batch = flags.batch;
  options.threads = flags.threads > 0 ? flags.threads : static_cast<int>(std::thread::hardware_concurrency());
  options.augmentation = augmentation_of(flags.augment);
  options.augmentation.height = options.augmentation.width = flags.crop;
  options.output = flags.output == "cuts" ? data::BatchOutput::cuts : data::BatchOutput::images;
  data::Loader loader(set, options);
  const Measurement result = measure(loader, flags.seconds);
  if (flags.json) {
    const nlohmann::json row{{"bench", "loader"},
                             {"data", flags.data},
                             {"shape", set->shape().to_string()},
                             {"augmentation", flags.augment},
                             {"output", flags.output},
                             {"global_batch", flags.batch},
                             {"threads", options.threads},
                             {"images_per_second", result.images_per_second},
                             {"images_per_second_min", result.slowest},
                             {"images_per_second_max", result.fastest},
                             {"output_megabytes_per_second", result.megabytes_per_second},
                             {"cpu_microseconds_per_image", result.cpu_us}};
    fmt::print("{}\n", json_text(row));
    return;
  }
  fmt::print("{:<12} {:<20} {:<8} {:>6} {:>8} {:>10} {:>20} {:>10} {:>14}\n", "images", "augmentation",
             "output", "batch", "threads", "images/s", "spread", "MB/s out", "CPU us/image");
  fmt::print("{:<12} {:<20} {:<8} {:>6} {:>8} {:>10.0f} {:>20} {:>10.0f} {:>14.1f}\n",
             set->shape().to_string(), flags.augment, flags.output, flags.batch, options.threads,
             result.images_per_second, fmt::format("{:.0f} to {:.0f}", result.slowest, result.fastest),
             result.megabytes_per_second, result.cpu_us);
}

}  // namespace

void add_bench_loader(CLI::App& bench) {
  auto flags = std::make_shared<Flags>();
  auto* command = bench.add_subcommand("loader", "Images a second of the data loader alone");
  const auto add = [command](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return command->add_option(flag, value, what)->capture_default_str()->check(check);
  };
  add("--data", flags->data, "HDF5 file, or 'synthetic'", not_empty())->type_name("FILE");
  add("--size", flags->size, "of synthetic images", whole_number(1, 4096));
  add("--crop", flags->crop, "size of the images that come out; 0: as stored", whole_number(0, 4096));
  add("--global-batch", flags->batch, "images a batch", whole_number(1, 1 << 20))->type_name("B");
  add("--threads", flags->threads, "that fill batches; 0: one a processor", whole_number(0, 1024))
      ->type_name("T");
  add("--augment", flags->augment,
      "crop[:PADDING], resized-crop, flip, cutout[:SIZE], erase[:PROBABILITY], none", not_empty())
      ->type_name("WORD,...");
  add("--output", flags->output, "images made ready on the host, or cuts for a device",
      one_of({"images", "cuts"}));
  add("--seconds", flags->seconds, "to measure for", number_in("[0.1, 600]"))->type_name("S");
  command->add_flag("--json", flags->json, "one JSON object instead of a table");
  command->callback([flags] { run(*flags); });
}

}  // namespace convoy::app
