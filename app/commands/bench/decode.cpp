#include "app/commands/bench/decode.h"

#include <fmt/format.h>

#include <cstdio>
// jpeglib.h uses the type FILE, so <cstdio> must come before it.
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/commands/validators.h"
#include "app/json_text.h"
#include "app/median.h"
#include "data/convert/jpeg_encode.h"
#include "data/image/image_decoder.h"
#include "data/synthetic/photographs.h"
#include "kernels/device/philox.h"

namespace convoy::app {
namespace {

struct Flags {
  int width = 500, height = 375, quality = 96, size = 224, images = 64, restart_interval = 0;
  double seconds = 3;
  bool whole = false, json = false;
};

// An encoded image and the region of it that a crop needs.
struct Task {
  std::vector<std::uint8_t> file;
  data::PixelRectangle region;
  int reduction = 1;
};

// Makes a task from a random number. Its region is a square of 8 % to 100 % of the image's area, as
// in random resized crops.
Task make_task(const Flags& flags, std::uint64_t number) {
  Task task;
  task.file = data::encode_jpeg_file(data::draw_photograph(flags.height, flags.width, number), flags.quality,
                                     flags.restart_interval);
  const auto words = kernels::philox(1, number);
  const double share = 0.08 + 0.92 * kernels::uniform(words.word[0]);
  const int most = std::min(flags.width, flags.height);
  const int side =
      flags.whole ? most : std::min(most, static_cast<int>(std::sqrt(share * flags.width * flags.height)));
  data::ImageDecoder decoder(data::ImageFormat::encoded, {0, 0, 3});
  decoder.open(task.file);
  task.reduction = decoder.reduction(static_cast<double>(side) / flags.size);
  const auto reduced = [&](int extent) { return (extent + task.reduction - 1) / task.reduction; };
  const auto place = [&](std::uint32_t word, int room) {
    return static_cast<std::int32_t>(word % static_cast<std::uint32_t>(room + 1));
  };
  task.region.width = flags.whole ? reduced(flags.width) : reduced(side);
  task.region.height = flags.whole ? reduced(flags.height) : reduced(side);
  task.region.x = place(words.word[1], reduced(flags.width) - task.region.width);
  task.region.y = place(words.word[2], reduced(flags.height) - task.region.height);
  return task;
}

// Decodes a region with no more calls of libjpeg-turbo than necessary, for comparison with
// ImageDecoder. ImageDecoder also decodes a margin around the region, so that pixels at the border
// of the region are exact, and then copies the region. This class does neither.
class BareDecoder {
 public:
  BareDecoder() {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&jpeg_);
  }
  ~BareDecoder() { jpeg_destroy_decompress(&jpeg_); }
  BareDecoder(const BareDecoder&) = delete;
  BareDecoder& operator=(const BareDecoder&) = delete;

  void read(const Task& task, std::uint8_t* to) {
    jpeg_mem_src(&jpeg_, task.file.data(), task.file.size());
    jpeg_read_header(&jpeg_, TRUE);
    jpeg_.out_color_space = JCS_RGB;
    jpeg_.scale_num = static_cast<unsigned>(8 / task.reduction);
    jpeg_.scale_denom = 8;
    jpeg_start_decompress(&jpeg_);
    auto x = static_cast<JDIMENSION>(task.region.x), width = static_cast<JDIMENSION>(task.region.width);
    if (width < jpeg_.output_width) jpeg_crop_scanline(&jpeg_, &x, &width);
    if (task.region.y > 0) jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(task.region.y));
    const auto end = static_cast<JDIMENSION>(task.region.y + task.region.height);
    std::uint8_t* rows[2] = {to, to + static_cast<std::size_t>(width) * 3};
    while (jpeg_.output_scanline < end)
      jpeg_read_scanlines(&jpeg_, rows, std::min<JDIMENSION>(2, end - jpeg_.output_scanline));
    jpeg_abort_decompress(&jpeg_);
  }

 private:
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
};

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Rates {
  // Images per second on one core by BareDecoder and by ImageDecoder, as medians over the rounds.
  // `ratio` is the median of decoder / bare.
  double bare = 0, decoder = 0, ratio = 0;
};

// Measures both decoders alternately on all tasks, so that other load on the machine affects both.
// Counts the CPU time of the thread.
Rates measure(const std::vector<Task>& tasks, double seconds) {
  BareDecoder bare;
  data::ImageDecoder decoder(data::ImageFormat::encoded, {0, 0, 3});
  std::size_t most = 0;
  for (const Task& task : tasks)
    most = std::max(most, static_cast<std::size_t>(task.region.width + 64) *
                              static_cast<std::size_t>(task.region.height + 64) * 3);
  std::vector<std::uint8_t> pixels(most);
  const auto time_all = [&](const std::function<void(const Task&)>& decode) {
    const double start = thread_seconds();
    for (const Task& task : tasks) decode(task);
    return static_cast<double>(tasks.size()) / (thread_seconds() - start);
  };
  std::vector<double> bare_rates, decoder_rates, ratios;
  for (double spent = 0; spent < seconds || ratios.size() < 3;) {
    const double start = thread_seconds();
    const double with_bare = time_all([&](const Task& task) { bare.read(task, pixels.data()); });
    const double with_decoder = time_all([&](const Task& task) {
      decoder.open(task.file);
      decoder.read(task.region, task.reduction, pixels.data());
    });
    bare_rates.push_back(with_bare);
    decoder_rates.push_back(with_decoder);
    ratios.push_back(with_decoder / with_bare);
    spent += thread_seconds() - start;
  }
  return {median(bare_rates), median(decoder_rates), median(ratios)};
}

void run(const Flags& flags) {
  std::vector<Task> tasks;
  double bytes = 0, pixels = 0;
  for (int i = 0; i < flags.images; ++i) {
    tasks.push_back(make_task(flags, static_cast<std::uint64_t>(i)));
    bytes += static_cast<double>(tasks.back().file.size()) / flags.images;
    pixels += static_cast<double>(tasks.back().region.width) * tasks.back().region.height / flags.images;
  }
  const Rates rates = measure(tasks, flags.seconds);
  if (flags.json) {
    const nlohmann::json row{{"bench", "decode"},
                             {"width", flags.width},
                             {"height", flags.height},
                             {"quality", flags.quality},
                             {"restart_interval", flags.restart_interval},
                             {"size", flags.size},
                             {"whole", flags.whole},
                             {"bytes_per_image", bytes},
                             {"pixels_per_image", pixels},
                             {"images_per_core_second", rates.decoder},
                             {"libjpeg_images_per_core_second", rates.bare},
                             {"of_libjpeg", rates.ratio}};
    fmt::print("{}\n", json_text(row));
    return;
  }
  fmt::print("{:<10} {:>8} {:>10} {:>12} {:>16} {:>22} {:>11}\n", "images", "quality", "KiB", "pixels read",
             "images/s a core", "libjpeg-turbo alone", "of it");
  fmt::print("{:<10} {:>8} {:>10.1f} {:>12.0f} {:>16.0f} {:>22.0f} {:>11.3f}\n",
             fmt::format("{}x{}", flags.width, flags.height), flags.quality, bytes / 1024, pixels,
             rates.decoder, rates.bare, rates.ratio);
}

}  // namespace

void add_bench_decode(CLI::App& bench) {
  auto flags = std::make_shared<Flags>();
  auto* command =
      bench.add_subcommand("decode", "JPEG images that a core decodes, against libjpeg-turbo alone");
  const auto add = [command](const char* flag, auto& value, const char* what, const CLI::Validator& check) {
    return command->add_option(flag, value, what)->capture_default_str()->check(check);
  };
  add("--width", flags->width, "of the images, which are drawn with the entropy of photographs",
      whole_number(16, 8192));
  add("--height", flags->height, "of the images", whole_number(16, 8192));
  add("--quality", flags->quality, "of the JPEG files", whole_number(1, 100));
  add("--restart-interval", flags->restart_interval,
      "blocks of pixels between restart markers, as --encode seekable writes them; 0: none",
      whole_number(0, 65535));
  add("--size", flags->size, "that random crops are resized to", whole_number(1, 4096));
  add("--images", flags->images, "different ones", whole_number(1, 100'000));
  add("--seconds", flags->seconds, "of CPU time to measure for", number_in("[0.1, 600]"))->type_name("S");
  command->add_flag("--whole", flags->whole, "decode whole images instead of random crops");
  command->add_flag("--json", flags->json, "one JSON object instead of a table");
  command->callback([flags] { run(*flags); });
}

}  // namespace convoy::app
