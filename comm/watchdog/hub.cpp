#include "comm/watchdog/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy::comm {
namespace {

RankState read_state(FrameReader& reader) {
  RankState state{.entered = reader.get<std::uint64_t>(), .waiting_in = {}, .last_operation = {}};
  state.step = reader.get<std::int64_t>();
  state.waiting_in = reader.get_text();
  state.waiting_seconds = reader.get<double>();
  state.last_operation = reader.get_text();
  return state;
}

OverdueWait read_overdue(const Frame& frame) {
  FrameReader reader(frame);
  OverdueWait wait;
  wait.channel_key = reader.get<std::uint64_t>();
  wait.sequence = reader.get<std::uint64_t>();
  wait.operation = reader.get_text();
  wait.step = reader.get<std::int64_t>();
  wait.members.resize(reader.get<std::uint32_t>());
  for (int& member : wait.members) member = reader.get<int>();
  return wait;
}

}  // namespace

Frame overdue_frame(const OverdueWait& wait) {
  FrameWriter writer;
  writer.put(wait.channel_key).put(wait.sequence).put(wait.operation).put(wait.step);
  writer.put(static_cast<std::uint32_t>(wait.members.size()));
  for (const int member : wait.members) writer.put(member);
  return writer.frame(FrameKind::overdue);
}

Frame state_frame(std::uint64_t channel_key, const RankState& state) {
  FrameWriter writer;
  writer.put(channel_key).put(state.entered).put(state.step).put(state.waiting_in);
  writer.put(state.waiting_seconds).put(state.last_operation);
  return writer.frame(FrameKind::state);
}

Hub::Hub(std::vector<HubPeer> peers, std::chrono::milliseconds timeout, HubDelays delays)
    : timeout_(timeout), delays_(delays) {
  for (HubPeer& peer : peers) peers_.push_back({std::move(peer.who), std::move(peer.socket)});
}

void Hub::append_to_poll(std::vector<pollfd>& items) const {
  for (const Peer& peer : peers_)
    if (peer.socket.open()) items.push_back({peer.socket.fd(), POLLIN, 0});
}

void Hub::receive(Clock::time_point now) {
  for (Peer& peer : peers_) {
    if (!peer.socket.open()) continue;
    std::vector<Frame> frames;
    peer.socket.receive(frames);
    for (const Frame& frame : frames) {
      try {
        handle(peer, frame, now);
        // Ignore a message that is too short.
      } catch (const std::runtime_error&) {
      }
    }
    if (!peer.socket.open()) handle_closed(peer, now);
  }
}

void Hub::handle(Peer& peer, const Frame& frame, Clock::time_point now) {
  FrameReader reader(frame);
  switch (frame.kind) {
    case FrameKind::overdue:
      if (!inquiry_) begin_inquiry(read_overdue(frame), now);
      break;
    case FrameKind::state:
      if (inquiry_ && reader.get<std::uint64_t>() == inquiry_->wait.channel_key)
        inquiry_->answers[peer.who.rank] = read_state(reader);
      break;
    case FrameKind::failure:
      failures_.push_back({peer.who, reader.get_text()});
      peer.failed = true;
      if (!first_failure_) first_failure_ = now;
      break;
    case FrameKind::abandon:
      peer.abandoned = true;
      if (!first_abandoned_) first_abandoned_ = now;
      break;
    case FrameKind::goodbye:
      peer.said_goodbye = true;
      break;
    default:
      break;
  }
}

void Hub::handle_closed(Peer& peer, Clock::time_point now) {
  if (peer.said_goodbye || peer.abandoned || peer.failed) return;
  if (deaths_count_until_ && now > *deaths_count_until_) return;
  peer.dead = true;
  if (!first_death_) first_death_ = now;
}

void Hub::begin_inquiry(OverdueWait wait, Clock::time_point now) {
  const Frame query = FrameWriter().put(wait.channel_key).frame(FrameKind::query);
  for (const int member : wait.members)
    if (member >= 0 && member < static_cast<int>(peers_.size())) peers_[member].socket.send(query);
  inquiry_ = Inquiry{std::move(wait), now, {}};
}

std::optional<Diagnosis> Hub::conclude(Clock::time_point now, const RankState& self) const {
  if (auto diagnosis = conclude_failures(now)) return diagnosis;
  if (auto diagnosis = conclude_abandoned(now)) return diagnosis;
  if (auto diagnosis = conclude_deaths(now, self)) return diagnosis;
  return conclude_inquiry(now);
}

// Ends the job after collectives of devices have failed on some ranks. Prints each different error
// once. The line names a rank, unless all ranks have the same error.
std::optional<Diagnosis> Hub::conclude_failures(Clock::time_point now) const {
  if (!first_failure_) return std::nullopt;
  if (failures_.size() < peers_.size() && now - *first_failure_ < delays_.failures) return std::nullopt;
  Diagnosis diagnosis;
  std::vector<std::string> said;
  for (const Failure& failure : failures_) {
    if (std::find(said.begin(), said.end(), failure.text) != said.end()) continue;
    said.push_back(failure.text);
    const auto same = std::count_if(failures_.begin(), failures_.end(),
                                    [&](const Failure& other) { return other.text == failure.text; });
    diagnosis.lines.push_back(same == std::ssize(peers_)
                                  ? failure.text
                                  : fmt::format("{}: {}", failure.who.to_string(), failure.text));
  }
  return diagnosis;
}

// Ends the job after a rank has left with an error that it prints itself. The hub prints nothing.
// It waits a moment, so that other ranks that meet the same error can print it, too.
std::optional<Diagnosis> Hub::conclude_abandoned(Clock::time_point now) const {
  if (!first_abandoned_ || now - *first_abandoned_ < delays_.abandoned) return std::nullopt;
  return Diagnosis{};
}

std::optional<Diagnosis> Hub::conclude_deaths(Clock::time_point now, const RankState& self) const {
  if (!first_death_ || now - *first_death_ < delays_.deaths) return std::nullopt;
  std::vector<RankIdentity> dead;
  for (const Peer& peer : peers_)
    if (peer.dead) dead.push_back(peer.who);
  return Diagnosis{{describe_death(dead, self)}};
}

std::optional<Diagnosis> Hub::conclude_inquiry(Clock::time_point now) const {
  if (!inquiry_) return std::nullopt;
  const auto& [wait, begun, answers] = *inquiry_;
  if (answers.size() < wait.members.size() && now - begun < delays_.answers) return std::nullopt;
  std::vector<Witness> members;
  for (const int member : wait.members) {
    const auto answer = answers.find(member);
    members.push_back(
        {peers_.at(member).who, answer == answers.end() ? std::nullopt : std::optional(answer->second)});
  }
  return Diagnosis{{describe_overdue(wait, members, timeout_)}};
}

void Hub::send_diagnosis(bool follow) {
  const Frame frame = FrameWriter().put(follow).frame(FrameKind::diagnosis);
  for (Peer& peer : peers_) peer.socket.send(frame);
}

void Hub::say_goodbye() {
  for (Peer& peer : peers_) peer.socket.send({FrameKind::goodbye, {}});
}

bool Hub::all_gone() const {
  // Leave out rank 0, whose connection to itself stays open as long as this process lives.
  return std::all_of(peers_.begin() + 1, peers_.end(),
                     [](const Peer& peer) { return peer.said_goodbye || !peer.socket.open(); });
}

void Hub::leak_connections() {
  for (Peer& peer : peers_) peer.socket.leak();
}

}  // namespace convoy::comm
