#include "app/commands/bench/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands/bench/gemm_shapes.h"
#include "app/commands/bench/math_choices.h"
#include "app/commands/commands.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "kernels/gemm/bench/measure.h"

namespace convoy::app {
namespace {

namespace gemm = kernels::gemm;
using gemm::Math;
using gemm::Rung;

struct Options {
  std::vector<std::string> maths{"bf16", "tf32", "fp32"};
  std::vector<std::string> rungs;
  std::vector<std::string> shapes;
  std::string group = "all";
  int candidates = 3;
  double milliseconds = 10;
  bool json = false, all = false;
};

struct Row {
  Math math;
  GemmShape shape;
  gemm::Plan plan;
  gemm::Check check;
  gemm::Timing timing;
  double rate = 0;  // operations per second
  // The rate divided by the largest rate that cuBLAS reached on a product of square matrices.
  double of_peak = 0;
  // The least possible time divided by the measured time. The least possible time is the larger of
  // operations / peak rate and bytes / copy rate.
  double of_limit = 0;
  double of_cublas = 0;  // the time of cuBLAS divided by this plan's time; 0 without cuBLAS
};

Math parse_math(const std::string& name) { return find_choice<Math>(name).value(); }

std::vector<Rung> parse_rungs(const std::vector<std::string>& names) {
  std::vector<Rung> rungs;
  for (const auto& name : names) {
    const auto* found = std::find_if(std::begin(gemm::kRungs), std::end(gemm::kRungs),
                                     [&](Rung rung) { return name == gemm::name_of(rung); });
    if (found == std::end(gemm::kRungs)) {
      std::string known;
      for (const Rung rung : gemm::kRungs) known += fmt::format(" {}", gemm::name_of(rung));
      throw UsageError(fmt::format("--rung: found '{}', expected one of{}", name, known));
    }
    rungs.push_back(*found);
  }
  if (rungs.empty()) rungs.assign(std::begin(gemm::kRungs), std::end(gemm::kRungs));
  return rungs;
}

std::vector<GemmShape> chosen_shapes(const Options& options) {
  std::vector<GemmShape> shapes;
  for (const auto& text : options.shapes) shapes.push_back(parse_gemm_shape(text));
  if (!shapes.empty()) return shapes;
  if (options.group != "gradients") shapes = listed_gemm_shapes();
  if (options.group != "listed")
    for (auto& shape : gradient_gemm_shapes()) shapes.push_back(shape);
  return shapes;
}

class GemmBenchmark {
 public:
  explicit GemmBenchmark(const Options& options)
      : options_(options), rungs_(parse_rungs(options.rungs)), shapes_(chosen_shapes(options)) {}

  void run() {
    device_ = gemm::summarize_device();
    if (!options_.json)
      fmt::print("{}, {} multiprocessors, copy {:.2f} TB/s\n", device_.name, device_.multiprocessors,
                 device_.copy_bytes_per_second * 1e-12);
    for (const auto& name : options_.maths) run_math(parse_math(name));
    print_means();
    for (const Row& row : rows_)
      if (!row.check.correct && row.plan.rung != Rung::cublas)
        throw std::runtime_error(fmt::format("bench gemm: {} is wrong on {}", row.plan.to_string(),
                                             row.shape.problem(row.math).to_string()));
  }

 private:
  void run_math(Math math) {
    const gemm::Problem square = GemmShape{"", false, true, 8192, 8192, 8192}.problem(math);
    gemm::Bench bench(square);
    peak_ = square.operations() / (bench.time({gemm::plan(Rung::cublas, square)}, 50e3).front().least * 1e-6);
    if (!options_.json)
      fmt::print(
          "\n{}: peak {:.1f} TFLOP/s (cuBLAS, 8192x8192x8192)\n{:>24} {:<28} {:>10} {:>7} {:>8} {:>6} {:>6} "
          "{:>8} {:>9}\n",
          gemm::name_of(math), peak_ * 1e-12, "shape", "kernel", "us", "+-%", "TFLOP/s", "%peak", "%limit",
          "x cuBLAS", "error");
    for (const auto& shape : shapes_) run_shape(math, shape);
  }

  void run_shape(Math math, const GemmShape& shape) {
    const gemm::Problem problem = shape.problem(math);
    gemm::Bench bench(problem);
    std::vector<Row> rows;
    std::vector<gemm::Plan> plans;
    for (const Rung rung : rungs_) {
      if (!gemm::supports(rung, problem)) continue;
      auto own = gemm::candidates(rung, problem);
      own.resize(std::min<std::size_t>(own.size(), std::size_t(options_.candidates)));
      plans.insert(plans.end(), own.begin(), own.end());
    }
    std::vector<gemm::Check> checks;
    for (const auto& plan : plans) checks.push_back(bench.check(plan, rows_.size() + checks.size() + 1));
    const auto timings = bench.time(plans, options_.milliseconds * 1e3);
    std::optional<double> cublas;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (plans[i].rung == Rung::cublas) cublas = timings[i].microseconds;
      const Row row = judged(math, shape, plans[i], checks[i], timings[i]);
      const bool contest = !options_.all && !rows.empty() && rows.back().plan.rung == row.plan.rung;
      // Show only one plan of a kernel family: the fastest one, or the first one with a wrong
      // result, so that the error is not hidden.
      if (!contest)
        rows.push_back(row);
      else if (rows.back().check.correct &&
               (!row.check.correct || row.timing.microseconds < rows.back().timing.microseconds))
        rows.back() = row;
    }
    for (Row& row : rows) {
      if (cublas) row.of_cublas = *cublas / row.timing.microseconds;
      print(row);
      rows_.push_back(row);
    }
  }

  Row judged(Math math, const GemmShape& shape, const gemm::Plan& plan, const gemm::Check& check,
             const gemm::Timing& timing) const {
    const gemm::Problem problem = shape.problem(math);
    Row row{math, shape, plan, check, timing};
    const double seconds = row.timing.microseconds * 1e-6;
    row.rate = problem.operations() / seconds;
    row.of_peak = row.rate / peak_;
    row.of_limit =
        std::max(problem.operations() / peak_, problem.bytes() / device_.copy_bytes_per_second) / seconds;
    return row;
  }

  void print(const Row& row) const {
    const double spread = 50 * (row.timing.most - row.timing.least) / row.timing.microseconds;
    const std::string shape =
        fmt::format("{}{}:{}x{}x{}", row.shape.transpose_a ? 'T' : 'N', row.shape.transpose_b ? 'T' : 'N',
                    row.shape.m, row.shape.n, row.shape.k);
    if (options_.json) {
      const nlohmann::json object{{"device", device_.name},
                                  {"math", gemm::name_of(row.math)},
                                  {"group", row.shape.group},
                                  {"shape", shape},
                                  {"rung", gemm::name_of(row.plan.rung)},
                                  {"plan", row.plan.to_string()},
                                  {"microseconds", row.timing.microseconds},
                                  {"microseconds_least", row.timing.least},
                                  {"microseconds_most", row.timing.most},
                                  {"tflops", row.rate * 1e-12},
                                  {"of_peak", row.of_peak},
                                  {"of_limit", row.of_limit},
                                  {"of_cublas", row.of_cublas},
                                  {"relative_error", row.check.relative_error},
                                  {"correct", row.check.correct}};
      fmt::print("{}\n", object.dump());
    } else {
      fmt::print("{:>24} {:<28} {:>10.2f} {:>7.1f} {:>8.2f} {:>6.1f} {:>6.1f} {:>8.3f} {:>9.1e}{}\n", shape,
                 row.plan.to_string(), row.timing.microseconds, spread, row.rate * 1e-12, 100 * row.of_peak,
                 100 * row.of_limit, row.of_cublas, row.check.relative_error,
                 row.check.correct ? "" : " WRONG");
    }
    std::fflush(stdout);
  }

  // Prints the time of cuBLAS divided by the time of each kernel family, as geometric means over
  // the shapes, and the same for the best of Convoy's families.
  void print_means() const {
    if (options_.json) return;
    for (const auto& name : options_.maths) {
      const Math math = parse_math(name);
      std::map<Rung, std::vector<double>> ratios;
      std::map<std::string, double> best;
      for (const Row& row : rows_) {
        if (row.math != math || row.of_cublas == 0 || row.plan.rung == Rung::cublas) continue;
        ratios[row.plan.rung].push_back(row.of_cublas);
        double& own = best[row.shape.problem(math).to_string()];
        own = std::max(own, row.of_cublas);
      }
      if (best.empty()) continue;
      fmt::print("\n{}: geometric mean of x cuBLAS\n", name);
      for (const auto& [rung, values] : ratios) print_mean(gemm::name_of(rung), values);
      std::vector<double> values;
      for (const auto& [shape, value] : best) values.push_back(value);
      print_mean("best own rung", values);
    }
  }
  static void print_mean(const char* name, const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    fmt::print("{:>16} {:.3f} over {} shapes, least {:.3f}\n", name, std::exp(sum / double(values.size())),
               values.size(), *std::min_element(values.begin(), values.end()));
  }

  const Options options_;
  const std::vector<Rung> rungs_;
  const std::vector<GemmShape> shapes_;
  gemm::DeviceSummary device_;
  double peak_ = 0;
  std::vector<Row> rows_;
};

}  // namespace

void add_bench_gemm(CLI::App& bench) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      bench.add_subcommand("gemm", "Matrix products on the GPU: each rung's time, rate and x cuBLAS");
  verb->add_option("--precision", options->maths, "of products; several with commas")
      ->check(one_of(names_of<Math>()))
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--rung", options->rungs, "rungs to run, with commas; all without it")
      ->delimiter(',')
      ->type_name("NAME,...");
  verb->add_option("--shapes", options->group, "which products")
      ->check(one_of({"listed", "gradients", "all"}))
      ->capture_default_str();
  verb->add_option("--shape", options->shapes, "only this product, MxNxK or TN:MxNxK; may be repeated")
      ->type_name("SHAPE");
  verb->add_option("--candidates", options->candidates, "plans of each rung to time; the fastest counts")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  verb->add_option("--milliseconds", options->milliseconds, "length of each of the five samples of a time")
      ->check(number_in("[0.1, 10000]"))
      ->type_name("MS")
      ->capture_default_str();
  verb->add_flag("--every-candidate", options->all, "print all candidates, not only the fastest");
  verb->add_flag("--json", options->json, "one JSON object a row");
  verb->callback([options] { GemmBenchmark(*options).run(); });
}

}  // namespace convoy::app
