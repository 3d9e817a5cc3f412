#include "app/concurrency/concurrency_simulator.h"

#include <algorithm>
#include <limits>

namespace convoy::app {
namespace {

constexpr double kNothing = 1e-9;  // a time below this is a rounding error and counts as 0

}  // namespace

bool ConcurrencySimulator::computes() const {
  return std::ranges::any_of(running_, [&](const Running& running) {
    const OpLoad& op = load_.ops[static_cast<std::size_t>(running.op)];
    return op.engine == Engine::compute && op.ms > 0;
  });
}

void ConcurrencySimulator::start(int op, double delay_ms) {
  running_.push_back({op, delay_ms, load_.ops[static_cast<std::size_t>(op)].ms});
}

double ConcurrencySimulator::step(std::vector<Running>& running) const {
  const auto computes = [&](const Running& one) {
    return one.delay <= 0 && load_.ops[static_cast<std::size_t>(one.op)].engine == Engine::compute &&
           one.left > 0;
  };
  std::vector<int> together;
  for (const Running& one : running)
    if (computes(one)) together.push_back(one.op);
  const double slowdown = 1 + caution_ * (interference_.slowdown(together) - 1);
  double least = std::numeric_limits<double>::infinity();
  for (const Running& one : running)
    least = std::min(least, one.delay > 0 ? one.delay : one.left * (computes(one) ? slowdown : 1));
  for (Running& one : running) {
    double& left = one.delay > 0 ? one.delay : one.left;
    left -= one.delay <= 0 && computes(one) ? least / slowdown : least;
    if (left < kNothing) left = 0;
  }
  return least;
}

std::vector<int> ConcurrencySimulator::advance() {
  std::vector<int> ended;
  while (ended.empty() && !running_.empty()) {
    now_ += step(running_);
    std::erase_if(running_, [&](const Running& one) {
      if (one.delay > 0 || one.left > 0) return false;
      ended.push_back(one.op);
      return true;
    });
  }
  std::ranges::sort(ended);
  return ended;
}

double ConcurrencySimulator::end_ms(int more, double delay_ms) const {
  std::vector<Running> running;
  for (const Running& one : running_)
    if (load_.ops[static_cast<std::size_t>(one.op)].engine == Engine::compute) running.push_back(one);
  if (more >= 0) running.push_back({more, delay_ms, load_.ops[static_cast<std::size_t>(more)].ms});
  double end = now_;
  while (!running.empty()) {
    end += step(running);
    std::erase_if(running, [](const Running& one) { return one.delay <= 0 && one.left <= 0; });
  }
  return end;
}

}  // namespace convoy::app
