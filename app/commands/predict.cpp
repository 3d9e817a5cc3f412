// `convoy predict`: writes the most probable classes of images, as the network of a checkpoint or
// of a model file computes them.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "app/commands/commands.h"
#include "app/commands/evaluation_flags.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/model/import/model_file.h"
#include "app/training/checkpoint/sha256.h"
#include "app/training/class_order.h"
#include "app/training/evaluation.h"
#include "app/training/rank_setup.h"
#include "app/training/report/predictions.h"
#include "app/training/trained_network.h"
#include "data/image_files.h"
#include "data/store/store.h"

namespace convoy::app {

template <>
inline constexpr auto kChoices<data::Split> =
    std::to_array<Choice<data::Split>>({{"train", data::Split::train}, {"test", data::Split::test}});

namespace {

struct PredictFlags {
  EvaluationOptions options;
  std::vector<std::string> data;
  data::Split split = data::Split::test;
  bool split_given = false, skip_bad = false, json = false;
  std::int64_t batch = 256, top = 5;
  std::string out = "-";
};

// Runs the network over the images of an HDF5 data set or of image files. Rank 0 writes the table.
class PredictCommand {
 public:
  PredictCommand(const PredictFlags& flags, const comm::MpiEnvironment& environment)
      : flags_(flags),
        ranks_(environment.world()),
        evaluation_(options_for(flags, ranks_), environment, agreed(flags)) {}

  void run() {
    is_store(flags_) ? open_store() : open_files();
    evaluation_.prepare();
    run_on_all_ranks(ranks_, [&] { open_table(); });
    const StepMetrics sum = evaluation_.run([this](const EvaluatedBatch& batch) { write(batch); }, skip());
    run_on_all_ranks(ranks_, [&] {
      if (!not_finite_.empty())
        throw std::runtime_error(
            fmt::format("{}: the probabilities of image {} are not finite", checkpoint_name(), not_finite_));
      if (table_) table_->finish();
    });
    const std::int64_t damaged = ranks_.all_reduce(damaged_.load(), comm::ReduceOp::sum, "damaged images");
    if (ranks_.rank() == 0) say_result(sum, damaged);
  }

  static bool is_store(const PredictFlags& flags) {
    return flags.data.size() == 1 &&
           (data_source(flags.data[0]) == DataSource::synthetic || data::is_hdf5(flags.data[0]));
  }

 private:
  static Facts agreed(const PredictFlags& flags) {
    return {{"--split", name_of(flags.split)},
            {"--skip-bad", flags.skip_bad ? "true" : "false"},
            {"--top", fmt::format("{}", flags.top)}};
  }
  static EvaluationOptions options_for(const PredictFlags& flags, const comm::Communicator& ranks) {
    EvaluationOptions options = flags.options;
    options.keep_probabilities = true;
    options.run.data = flags.data.front();
    options.run.global_batch = flags.batch * ranks.size();
    return options;
  }

  const CheckpointState& checkpoint() const { return evaluation_.checkpoint(); }
  const std::string& checkpoint_name() const { return evaluation_.source(); }

  // Opens the HDF5 data set. Uses its labels only if it has the same classes as the checkpoint.
  void open_store() {
    Dataset& dataset = evaluation_.open([this](const TrainOptions& run) {
      OpenedData opened = open_data(run);
      if (flags_.split == data::Split::train) {
        opened.sets[1] = std::exchange(opened.sets[0], nullptr);
        opened.info.size = {0, opened.info.size[0]};
      }
      return opened;
    });
    const std::string& name = flags_.data[0];
    require_same_data(ranks_, name, facts_of(dataset, evaluation_.options().run, ranks_));
    std::string warning;
    const auto same_number = [&] { return std::ssize(dataset.info().classes) == checkpoint().classes; };
    if (!evaluation_.has_checkpoint() && checkpoint().class_names.empty() && same_number()) {
      classes_ = dataset.info().classes;  // the model file has no class names
      return;
    }
    try {
      warning = match_classes(dataset, name, checkpoint(), checkpoint_name());
    } catch (const std::runtime_error& error) {
      warning = fmt::format("{}; its labels are not used", error.what());
      dataset.drop_labels(class_names(checkpoint()));
    }
    if (!warning.empty() && ranks_.rank() == 0) spdlog::warn("{}", warning);
    classes_ = dataset.info().classes;
  }

  void open_files() {
    classes_ = class_names(checkpoint());
    Dataset& dataset = evaluation_.open([this](const TrainOptions&) { return opened_files(); });
    Sha256 paths;
    for (std::int64_t i = 0; i < files_->size(); ++i) {
      const std::string path = files_->name(i) + '\n';
      paths.update(path.data(), path.size());
    }
    require_same_data(
        ranks_, flags_.data[0],
        {{"images", fmt::format("{}", dataset.test_size())}, {"SHA-256 of the paths", paths.hex_digest()}});
  }

  OpenedData opened_files() {
    if (!evaluation_.has_normalisation())
      throw std::runtime_error(fmt::format(
          "{}: does not say how its images were normalised (metadata mean and std, as `convoy export` writes "
          "them), so expected an HDF5 file in --data, which does",
          checkpoint_name()));
    data::ImageFilesOptions rules;
    rules.channels = encoded_channels(checkpoint(), checkpoint_name());
    rules.skip_bad = flags_.skip_bad;
    if (ranks_.rank() == 0) rules.warn = [](const std::string& message) { spdlog::warn("{}", message); };
    const auto files = std::make_shared<data::ImageFiles>(flags_.data, rules);
    files->label_by_folder(classes_);
    files_ = files;
    OpenedData opened;
    opened.info.format = data::ImageFormat::encoded;
    opened.info.shape = files->shape();
    opened.info.size = {0, files->size()};
    opened.info.classes = classes_;
    opened.sets[1] = files;
    return opened;
  }

  void open_table() {
    top_ = std::min(static_cast<std::size_t>(flags_.top), classes_.size());
    const auto form = flags_.json ? PredictionTable::Form::json : PredictionTable::Form::csv;
    if (ranks_.rank() == 0) table_.emplace(flags_.out, form, files_ ? "path" : "index", classes_, top_);
  }

  std::function<void(const std::string&)> skip() {
    if (!flags_.skip_bad) return nullptr;
    return [this](const std::string& message) {
      spdlog::warn("skipped {}", message);
      ++damaged_;
    };
  }

  // Gathers the predictions of a batch on rank 0, which writes them to the table. Every rank sends
  // the same number of rows, and rank 0 writes them in the order of the ranks.
  void write(const EvaluatedBatch& batch) {
    const std::size_t rows = batch.samples.size(), classes = classes_.size();
    const auto ranks = static_cast<std::size_t>(ranks_.size());
    ranked_.resize(rows * top_);
    for (std::size_t row = 0; row < rows; ++row)
      rank_classes(batch.probabilities.subspan(row * classes, classes),
                   std::span(ranked_).subspan(row * top_, top_));
    if (table_) {
      all_samples_.resize(rows * ranks);
      all_ranked_.resize(rows * ranks * top_);
    }
    ranks_.gather(std::span<const std::int64_t>(batch.samples), std::span(all_samples_), 0,
                  "images of a batch");
    ranks_.gather(std::as_bytes(std::span(ranked_)), std::as_writable_bytes(std::span(all_ranked_)), 0,
                  "predictions of a batch");
    for (std::size_t row = 0; row < all_samples_.size(); ++row) {
      const std::int64_t sample = all_samples_[row];
      if (sample < 0) continue;
      const auto top = std::span<const RankedClass>(all_ranked_).subspan(row * top_, top_);
      // NaN is ranked last, and is the first class only if no class has a number.
      if (!not_finite_.empty()) continue;
      if (!std::isfinite(top[0].probability)) {
        not_finite_ = files_ ? files_->name(sample) : fmt::format("{}", sample);
        continue;
      }
      files_ ? table_->add(files_->name(sample), top) : table_->add(sample, top);
      ++written_;
    }
  }

  // Prints the summary. It goes to standard error if the table goes to standard output.
  void say_result(const StepMetrics& sum, std::int64_t damaged) const {
    std::string line = fmt::format("{} images by {}", written_, evaluation_.describe());
    if (sum.samples > 0)
      line += fmt::format(", top-1 {:.2f} %, top-5 {:.2f} %", 100 * sum.top1 / sum.samples,
                          100 * sum.top5 / sum.samples);
    std::string left_out;
    const auto add = [&](const std::string& kind, std::int64_t count) {
      if (count > 0)
        left_out += fmt::format("{} {}: {}", left_out.empty() ? "; left out:" : ",", kind, count);
    };
    add("images that cannot be read", damaged);
    if (files_)
      for (const auto& [kind, count] : files_->left_out()) add(kind, count);
    if (flags_.out == "-")
      fmt::print(stderr, "convoy: {}{}\n", line, left_out);
    else
      fmt::print("{}: {}{}\n", flags_.out, line, left_out);
  }

  const PredictFlags& flags_;
  const comm::Communicator& ranks_;
  Evaluation evaluation_;
  std::shared_ptr<const data::ImageFiles> files_;  // null if the images come from HDF5
  std::vector<std::string> classes_;
  std::size_t top_ = 0;
  std::optional<PredictionTable> table_;  // set only on rank 0
  std::vector<RankedClass> ranked_, all_ranked_;
  std::vector<std::int64_t> all_samples_;
  std::int64_t written_ = 0;
  std::string not_finite_;  // the first image whose probabilities are not finite; known to rank 0
  std::atomic<std::int64_t> damaged_ = 0;
};

void check(const PredictFlags& flags) {
  const std::string& model = flags.options.run.model;
  if (flags.options.checkpoint.empty() == model.empty())
    throw UsageError("expected --checkpoint, or --model FILE.onnx");
  if (!model.empty() && !is_model_file(model))
    throw UsageError(fmt::format("--model: found '{}', expected FILE.onnx", model));
  const auto store =
      std::ranges::find_if(flags.data, [](const std::string& name) { return data::is_hdf5(name); });
  if (store != flags.data.end() && flags.data.size() > 1)
    throw UsageError(fmt::format(
        "--data: found the HDF5 file {} with other names, expected it alone, or images and folders", *store));
  if (flags.split_given && !PredictCommand::is_store(flags))
    throw UsageError(fmt::format("--split: {} is no HDF5 file, expected one, since only these have splits",
                                 flags.data[0]));
}

void predict(const PredictFlags& flags) {
  check(flags);
  const TrainOptions& run = flags.options.run;
  comm::MpiEnvironment environment(timeout_of(run), device_of(run.backend));
  PredictCommand(flags, environment).run();
}

}  // namespace

void add_predict_command(CLI::App& app) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* verb = app.add_subcommand("predict", "Name the classes of images");
  verb->option_defaults()->group("Model and data");
  add_checkpoint_flags(*verb, flags->options);
  add_model_flags(*verb, flags->options);
  verb->add_option("--data", flags->data,
                   "an HDF5 file, or images and folders, of which all images are taken")
      ->required()
      ->check(not_empty())
      ->type_name("NAME...");
  add_choice(*verb, "--split", flags->split, "of an HDF5 file")->each([flags](const std::string&) {
    flags->split_given = true;
  });
  verb->add_flag("--skip-bad", flags->skip_bad, "leave out files that cannot be read as images");
  verb->option_defaults()->group("Execution");
  verb->add_option("--batch", flags->batch, "images of one rank's step")
      ->capture_default_str()
      ->check(whole_number(1, 1 << 20))
      ->type_name("B");
  add_execution_flags(*verb, flags->options);
  verb->option_defaults()->group("Output");
  verb->add_option("--out", flags->out, "the file to write; -: standard output")
      ->capture_default_str()
      ->check(not_empty())
      ->type_name("FILE");
  verb->add_option("--top", flags->top, "classes of an image, at most all")
      ->capture_default_str()
      ->check(whole_number(1, 1 << 24))
      ->type_name("K");
  verb->add_flag("--json", flags->json, "one JSON object a line instead of CSV");
  verb->callback([flags] { predict(*flags); });
}

}  // namespace convoy::app
