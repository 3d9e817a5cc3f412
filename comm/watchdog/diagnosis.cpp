#include "comm/watchdog/diagnosis.h"

#include <fmt/format.h>
#include <unistd.h>

namespace convoy::comm {
namespace {

// The largest number of ranks that a line names, so that it stays readable.
constexpr std::size_t kNamed = 8;

std::string join_names(const std::vector<RankIdentity>& ranks) {
  std::string names;
  for (std::size_t i = 0; i < ranks.size() && i < kNamed; ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i].to_string());
  if (ranks.size() > kNamed) names += fmt::format(" and {} more", ranks.size() - kNamed);
  return names;
}

std::string reason(const Witness& member) {
  if (!member.state) return "it does not respond at all: stopped, or its host is cut off";
  const RankState& state = *member.state;
  if (!state.waiting_in.empty())
    return fmt::format("it waits in {} for {:.0f} s", operation_at(state.waiting_in, state.step),
                       state.waiting_seconds);
  if (!state.last_operation.empty())
    return fmt::format("it is in no collective, its last was {}",
                       operation_at(state.last_operation, state.step));
  return "it has not called any collective";
}

std::string in_seconds(std::chrono::milliseconds time) {
  return fmt::format("{} s", static_cast<double>(time.count()) / 1000);
}

}  // namespace

std::string operation_at(const std::string& operation, std::int64_t step) {
  return step < 0 ? operation : fmt::format("{} (step {})", operation, step);
}

std::string describe_overdue(const OverdueWait& wait, const std::vector<Witness>& members,
                             std::chrono::milliseconds timeout) {
  std::vector<RankIdentity> missing;
  std::string reasons, elsewhere;
  for (const Witness& member : members) {
    if (member.state && member.state->entered >= wait.sequence) {
      if (!member.state->waiting_in.empty() && member.state->waiting_in != wait.operation)
        elsewhere += fmt::format(", but rank {} waits in {}", member.who.rank, member.state->waiting_in);
      continue;
    }
    missing.push_back(member.who);
    if (missing.size() <= kNamed)
      reasons += fmt::format("{}{}", missing.size() == 1 ? "" : fmt::format("; rank {}: ", member.who.rank),
                             reason(member));
  }
  const std::string operation = operation_at(wait.operation, wait.step);
  if (missing.empty())
    return fmt::format("{}: not finished within {} although all {} ranks have come to it{}; ending the job",
                       operation, in_seconds(timeout), members.size(),
                       elsewhere.empty() ? ": MPI, NCCL or the network does not deliver" : elsewhere);
  return fmt::format("{}: no answer from {} within {}: {}; ending the job", operation, join_names(missing),
                     in_seconds(timeout), reasons);
}

std::string describe_death(const std::vector<RankIdentity>& dead, const RankState& survivor) {
  std::string when;
  if (!survivor.waiting_in.empty())
    when = " during " + operation_at(survivor.waiting_in, survivor.step);
  else if (survivor.step >= 0)
    when = fmt::format(" in step {}", survivor.step);
  return fmt::format("{} died (killed or crashed){}; ending the job", join_names(dead), when);
}

void print_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "convoy: " + line + "\n";
  // Write without stdio, because a thread that was stopped while it was printing may hold stdio's
  // lock.
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t now = ::write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (now <= 0) return;
    written += static_cast<std::size_t>(now);
  }
}

}  // namespace convoy::comm
