// `convoy data convert|info|synth`: makes an HDF5 file from images, describes an HDF5 file, or
// makes one of synthetic images.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>

#include "app/commands/commands.h"
#include "app/commands/data_photographs.h"
#include "app/commands/validators.h"
#include "app/errors.h"
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
    const double mean_kib =
        static_cast<double>(store.stored_bytes(split)) / static_cast<double>(count) / 1024;
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
  for (const SourceFormat format :
       {SourceFormat::images, SourceFormat::tiny_imagenet, SourceFormat::webdataset, SourceFormat::csv,
        SourceFormat::cifar, SourceFormat::idx})
    if (name == data::name_of(format)) return format;
  return SourceFormat::automatic;
}

// Shows how many images are converted, their rate and the time left. On a terminal it redraws one
// line. Elsewhere it prints a line every 20 seconds.
class ConvertDisplay {
 public:
  void show(const data::ConvertProgress& progress) {
    const auto now = Clock::now();
    // Start the clock at the first image: the time before was spent on reading names.
    if (first_images_ == 0) {
      first_ = shown_ = now;
      first_images_ = progress.images;
    }
    const std::chrono::duration<double> since = now - shown_, running = now - first_;
    if (since.count() < (interactive_ ? 0.2 : 20) || progress.images == progress.total ||
        progress.images == first_images_)
      return;
    shown_ = now;
    const double rate = static_cast<double>(progress.images - first_images_) / running.count();
    const double left = static_cast<double>(progress.total - progress.images) / rate;
    const std::string line = fmt::format("{} of {} images, {:.{}f} images/s, {} left", progress.images,
                                         progress.total, rate, rate < 10 ? 1 : 0, duration(left));
    if (interactive_)
      fmt::print(stderr, "\r\x1b[K{}", line);
    else
      fmt::print(stderr, "convoy: {}\n", line);
    std::fflush(stderr);
    line_open_ = interactive_;
  }
  // Clears the progress line. Call this before anything else is printed.
  void clear() {
    if (line_open_) fmt::print(stderr, "\r\x1b[K");
    line_open_ = false;
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  static std::string duration(double seconds) {
    const auto whole = static_cast<std::int64_t>(seconds);
    return whole < 60     ? fmt::format("{} s", whole)
           : whole < 3600 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                          : fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  }

  Clock::time_point start_ = Clock::now(), first_ = start_, shown_ = start_;
  bool interactive_ = ::isatty(STDERR_FILENO) != 0;
  bool line_open_ = false;
  std::int64_t first_images_ = 0;  // images that were converted when `first_` was set
};

struct ConvertFlags {
  std::string source, out, format = "auto", encode = "auto";
  data::ConvertOptions options;
};

// Throws UsageError for flags that contradict each other.
void check_encoding(const ConvertFlags& flags) {
  using Form = data::Encoding::Form;
  const auto& [size, short_side] = std::pair(flags.options.size, flags.options.short_side);
  const Form form = flags.options.encoding.form;
  if (size > 0 && short_side > 0) throw UsageError("--short-side: found with --size, expected one of them");
  if ((form == Form::keep || form == Form::seekable) && (size > 0 || short_side > 0))
    throw UsageError(
        fmt::format("--{}: found with --encode {}, which keeps the images' pixels, expected "
                    "jpeg:QUALITY or raw",
                    size > 0 ? "size" : "short-side", flags.encode));
  if (form == Form::raw && short_side > 0)
    throw UsageError(
        "--short-side: found with --encode raw, whose images are equally large, expected --size or "
        "jpeg:QUALITY");
}

void convert(ConvertFlags& flags) {
  check_encoding(flags);
  ConvertDisplay display;
  const auto say = [&display](const std::string& line) {
    display.clear();
    fmt::print(stderr, "convoy: {}\n", line);
  };
  flags.options.warn = say;
  flags.options.note = say;
  flags.options.progress = [&display](const data::ConvertProgress& progress) { display.show(progress); };
  flags.options.format = format_of(flags.format);
  data::ConvertReport report;
  try {
    report = data::convert(flags.source, flags.out, flags.options);
  } catch (...) {
    display.clear();
    throw;
  }
  display.clear();
  std::string left_out;
  for (const auto& [kind, count] : report.left_out)
    left_out += fmt::format("{} {}: {}", left_out.empty() ? "; left out:" : ",", kind, count);
  fmt::print("{}: {} training and {} test images of {} classes from {} ({}, {}), {:.1f} s{}\n", flags.out,
             report.train, report.test, report.classes, flags.source, name_of(report.format),
             report.encoding.to_string(), display.seconds(),
             left_out.empty() ? "; nothing left out" : left_out);
}

void add_source_flags(CLI::App& command, ConvertFlags& flags) {
  command
      .add_option("SOURCE", flags.source,
                  "folder, archive, list of archives (\"train-{000..146}.tar\") or CSV file")
      ->required()
      ->check(not_empty());
  command.add_option("OUT", flags.out, "the HDF5 file to write")->required()->check(not_empty());
  command.add_option("--format", flags.format, "of the source")
      ->capture_default_str()
      ->check(one_of({"auto", "images", "tiny-imagenet", "webdataset", "csv", "cifar", "idx"}));
  command.add_option("--test", flags.options.test, "a second source, of the test images")
      ->check(not_empty())
      ->type_name("SOURCE");
  command
      .add_option("--test-labels", flags.options.test_labels,
                  "labels of test images without class folders: ImageNet's development kit, or a text file")
      ->check(not_empty())
      ->type_name("FILE")
      ->needs("--test");
  command
      .add_option("--test-share", flags.options.test_share,
                  "share of every class's images that become test images")
      ->check(number_in("(0, 1)"))
      ->type_name("P");
  command
      .add_option("--test-folder", flags.options.test_folder,
                  "the folder of test images, if there are several")
      ->check(not_empty())
      ->type_name("NAME");
  command.add_option("--root", flags.options.root, "the folder in SOURCE that holds train/ or the classes")
      ->check(not_empty())
      ->type_name("DIR");
  command.add_flag("--skip-bad", flags.options.skip_bad, "leave out files that cannot be read as images");
}

void add_convert(CLI::App& data_command) {
  auto flags = std::make_shared<ConvertFlags>();
  auto* command =
      data_command.add_subcommand("convert", "Convert folders, archives or lists of images to an HDF5 file");
  add_source_flags(*command, *flags);
  command
      ->add_option("--encode", flags->encode,
                   "keep: the files as they are; seekable: the same pixels, in JPEG files whose parts can be "
                   "decoded alone; jpeg:QUALITY: shrunk and written as JPEG; raw: pixels")
      ->capture_default_str()
      ->check(CLI::Validator(
          [](std::string& text) -> std::string {
            try {
              data::Encoding::parse(text);
              return "";
            } catch (const std::invalid_argument& error) {
              return error.what();
            }
          },
          ""))
      ->type_name("FORM");
  command
      ->add_option("--short-side", flags->options.short_side,
                   "shrink images until their shorter side is this long; never enlarge them")
      ->check(whole_number(1, 4096));
  command
      ->add_option(
          "--size", flags->options.size,
          "resize the shorter side of images to this length and cut out the centre square, with the pixels "
          "of torchvision's Resize and CenterCrop")
      ->check(whole_number(1, 4096));
  command->add_option("--channels", flags->options.channels, "of images: 3 (colour) or 1 (grey)")
      ->capture_default_str()
      ->check(one_of({"1", "3"}));
  command->add_option("--threads", flags->options.threads, "that decode; 0: one a processor")
      ->capture_default_str()
      ->check(whole_number(0, 1024));
  command->callback([flags] {
    flags->options.encoding = data::Encoding::parse(flags->encode);
    convert(*flags);
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
