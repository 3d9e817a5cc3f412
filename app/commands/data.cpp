// `convoy data convert|info|synth`: make and look at the HDF5 files that Convoy trains from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "app/commands/commands.h"
#include "app/commands/data_photographs.h"
#include "app/commands/validators.h"
#include "data/atomic_file.h"
#include "data/convert/convert.h"
#include "data/store/store.h"
#include "data/synthetic/drawn_images.h"

namespace convoy::app {
namespace {

using data::Split;

constexpr std::int64_t kMostImages = 100'000'000;

void print_classes(const data::Store& store) {
  const auto& classes = store.info().classes;
  std::vector<std::int64_t> train(classes.size()), test(classes.size());
  for (const auto label : store.labels(Split::train)) ++train[static_cast<std::size_t>(label)];
  for (const auto label : store.labels(Split::test)) ++test[static_cast<std::size_t>(label)];
  fmt::print("\n{:>5}  {:<24} {:>10} {:>10}\n", "label", "class", "train", "test");
  for (std::size_t i = 0; i < classes.size(); ++i) {
    fmt::print("{:>5}  {:<24} {:>10} {:>10}\n", i, classes[i], train[i], test[i]);
  }
}

void print_info(const std::string& file) {
  const data::Store store(file);
  const auto& info = store.info();
  fmt::print("{:<10} {}\n", "file", file);
  fmt::print("{:<10} {:.1f} MiB\n", "size",
             static_cast<double>(std::filesystem::file_size(file)) / (1 << 20));
  const bool encoded = info.format == data::ImageFormat::encoded;
  fmt::print("{:<10} {}\n", "images",
             encoded ? fmt::format("JPEG or PNG files of any size, {} channels", info.shape.channels)
                     : fmt::format("{} (height x width x channels), uint8", info.shape.to_string()));
  for (const Split split : {Split::train, Split::test}) {
    const auto count = info.size[static_cast<std::size_t>(split)], chunk = store.chunk_images(split);
    const double mean_kib = static_cast<double>(store.stored_bytes(split)) / static_cast<double>(count) / 1024;
    fmt::print("{:<10} {} images, {}\n", name_of(split), count,
               encoded     ? fmt::format("{:.1f} KiB each", mean_kib)
               : chunk > 0 ? fmt::format("{} a chunk", chunk)
                           : "contiguous");
  }
  fmt::print("{:<10} {:.4f}\n", "mean", fmt::join(info.mean, " "));
  fmt::print("{:<10} {:.4f}\n", "std", fmt::join(info.std, " "));
  fmt::print("{:<10} {}\n", "classes", info.classes.size());
  print_classes(store);
}

data::SourceFormat format_of(const std::string& name) {
  using data::SourceFormat;
  for (const SourceFormat format : {SourceFormat::images, SourceFormat::cifar, SourceFormat::idx})
    if (name == data::name_of(format)) return format;
  return SourceFormat::automatic;
}

void add_convert(CLI::App& data_command) {
  struct Flags {
    std::string source, out, format = "auto";
    data::ConvertOptions options;
  };
  auto flags = std::make_shared<Flags>();
  auto* command = data_command.add_subcommand(
      "convert", "Convert an image folder, an archive of one, CIFAR or IDX files to an HDF5 file");
  command->add_option("SOURCE", flags->source, "folder, archive or file")->required();
  command->add_option("OUT", flags->out, "the HDF5 file to write")->required();
  command->add_option("--format", flags->format, "of the source")
      ->capture_default_str()
      ->check(one_of({"auto", "images", "cifar", "idx"}));
  command->add_flag("--skip-bad", flags->options.skip_bad, "leave out images that cannot be decoded");
  command
      ->add_option("--size", flags->options.size, "resize the shorter side of images and cut out the centre")
      ->check(whole_number(1, 4096));
  command->add_option("--channels", flags->options.channels, "of image folders: 3 (colour) or 1 (grey)")
      ->capture_default_str()
      ->check(one_of({"1", "3"}));
  command->add_option("--threads", flags->options.threads, "that decode; 0: one a processor")
      ->capture_default_str()
      ->check(whole_number(0, 1024));
  command->callback([flags] {
    flags->options.warn = [](const std::string& line) { fmt::print(stderr, "convoy: {}\n", line); };
    flags->options.format = format_of(flags->format);
    const auto start = std::chrono::steady_clock::now();
    data::remove_partial_files_on_signals();
    const auto report = data::convert(flags->source, flags->out, flags->options);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    fmt::print("{}: {} training and {} test images from {} ({}), {} skipped, {:.1f} s\n", flags->out,
               report.train, report.test, flags->source, name_of(report.format), report.skipped,
               seconds.count());
  });
}

void add_synth(CLI::App& data_command) {
  struct Flags {
    std::string out;
    data::DrawnSet set;
    int threads = 0;
  };
  auto flags = std::make_shared<Flags>();
  auto* command = data_command.add_subcommand("synth", "Draw a data set of figures: for trying things out");
  command->add_option("OUT", flags->out, "the HDF5 file to write")->required();
  command->add_option("--classes", flags->set.classes, "2 to 36")
      ->capture_default_str()
      ->check(whole_number(2, 36));
  command->add_option("--size", flags->set.size, "pixels a side")
      ->capture_default_str()
      ->check(whole_number(8, 4096));
  command->add_option("--train", flags->set.train, "training images")
      ->capture_default_str()
      ->check(whole_number(1, kMostImages));
  command->add_option("--test", flags->set.test, "test images")
      ->capture_default_str()
      ->check(whole_number(1, kMostImages));
  command->add_option("--seed", flags->set.seed, "of everything that is random")
      ->capture_default_str()
      ->check(whole_number(0));
  command->add_option("--threads", flags->threads, "that draw; 0: one a processor")
      ->capture_default_str()
      ->check(whole_number(0, 1024));
  command->callback([flags] {
    data::remove_partial_files_on_signals();
    data::write_drawn_set(flags->set, flags->out, flags->threads);
    fmt::print("{}: {} training and {} test images of {} classes\n", flags->out, flags->set.train,
               flags->set.test, flags->set.classes);
  });
}

void add_info(CLI::App& data_command) {
  auto file = std::make_shared<std::string>();
  auto* command = data_command.add_subcommand("info", "Show what an HDF5 file holds");
  command->add_option("FILE", *file, "the HDF5 file")->required();
  command->callback([file] { print_info(*file); });
}

}  // namespace

void add_data_command(CLI::App& app) {
  auto* command = app.add_subcommand("data", "Make and inspect data sets");
  command->require_subcommand(1);
  add_convert(*command);
  add_info(*command);
  add_synth(*command);
  add_data_photographs(*command);
}

}  // namespace convoy::app
