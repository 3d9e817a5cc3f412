// Tests reading the job file of `convoy simulate --jobs`: a good file is read, and any other text
// is refused in one line.
#include <gtest/gtest.h>

#include <stdexcept>

#include "partition/random.h"
#include "partition/sharing/policies.h"

namespace convoy::partition::sharing {
namespace {

constexpr const char* kGood = R"({"memory_bytes": 2048, "clients": [
  {"name": "a", "copy_us": 1.5, "kernels": [2, 3.25], "idle_us": [4], "copy_back_us": 5, "bytes": 1024, "arrival_us": 6},
  {"name": "b", "copy_us": 0.0004, "kernels": [1, 1]}]})";

std::string error_of(const std::string& text, SharedDeviceSpec device = {}) {
  try {
    Workload(parse_clients(text, "jobs.json").clients, device, "jobs.json");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReadClients, ReadsEveryField) {
  const ClientFile file = parse_clients(kGood, "jobs.json");
  EXPECT_EQ(file.memory, 2048);
  ASSERT_EQ(file.clients.size(), 2u);
  const Client &a = file.clients[0], &b = file.clients[1];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.copy_in, 1500);
  EXPECT_EQ(a.kernels, (std::vector<Nanoseconds>{2000, 3250}));
  EXPECT_EQ(a.idle, (std::vector<Nanoseconds>{4000}));
  EXPECT_EQ(a.copy_back, 5000);
  EXPECT_EQ(a.bytes, 1024);
  EXPECT_EQ(a.arrival, 6000);
  EXPECT_EQ(b.copy_in, 0) << "times are kept to the nanosecond";
  EXPECT_EQ(b.idle, (std::vector<Nanoseconds>{0}));
  EXPECT_EQ(b.copy_back + b.bytes + b.arrival, 0);
  EXPECT_EQ(parse_clients(R"({"clients": [{"name": "a", "copy_us": 1, "kernels": [1]}]})", "").memory,
            kUnlimited);
}

// Returns the valid file with `old` replaced by `text`.
std::string with(const std::string& old, const std::string& text) {
  std::string file = kGood;
  const std::size_t at = file.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return file.replace(at, old.size(), text);
}

TEST(ReadClients, NamesTheClientAndTheField) {
  const std::string time = "expected a number of µs, 0 or more and below 104 days";
  const std::string bytes = "expected a whole number of bytes, ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {kGood, "no error"},
      {"{", "jobs.json: not JSON at byte 2"},
      {with("1.5", "NaN"), "jobs.json: not JSON at byte 64"},
      {with("1.5", "1e999"), "jobs.json: copy_us is too large"},
      {"[]", "jobs.json: found an empty array, expected an object with clients"},
      {"{}", "jobs.json: field clients is missing"},
      {R"({"clients": 3})", "jobs.json: clients is 3, expected an array of objects"},
      {R"({"clients": []})", "jobs.json: clients is an empty array, expected an array of objects"},
      {R"({"clients": ["a"]})", "jobs.json: client 1: found \"a\", expected an object"},
      {with("memory_bytes", "memory"), "jobs.json: unknown field memory"},
      {with("2048", "0"), "jobs.json: memory_bytes is 0, " + bytes + "1 or more and below 9e15"},
      {with("2048", "1.5"), "jobs.json: memory_bytes is 1.5, " + bytes + "1 or more and below 9e15"},
      {with("\"a\"", "\"\""), "jobs.json: client 1: name is \"\", expected a text"},
      {with("\"a\"", "7"), "jobs.json: client 1: name is 7, expected a text"},
      {with("\"b\"", "\"a\""), "jobs.json: client 2: name is \"a\", given twice"},
      {with("\"name\": \"b\", ", ""), "jobs.json: client 2: field name is missing"},
      {with("arrival_us", "arival_us"), "jobs.json: client \"a\": unknown field arival_us"},
      {with("arrival_us", "bytes"), "jobs.json: clients: \"bytes\" is given twice"},
      {with("\"copy_us\": 0.0004, ", ""), "jobs.json: client \"b\": field copy_us is missing"},
      {with("1.5", "-1"), "jobs.json: client \"a\": copy_us is -1, " + time},
      {with("1.5", "\"nan\""), "jobs.json: client \"a\": copy_us is \"nan\", " + time},
      {with("1.5", "null"), "jobs.json: client \"a\": copy_us is null, " + time},
      {with("1.5", "9e12"), "jobs.json: client \"a\": copy_us is 9000000000000.0, " + time},
      {with("3.25", "-3"), "jobs.json: client \"a\": kernels[1] is -3, " + time},
      {with("[4]", "[[4]]"), "jobs.json: client \"a\": idle_us[0] is an array, " + time},
      {with("[4]", "4"), "jobs.json: client \"a\": idle_us is 4, expected an array of times"},
      {with("[4]", "[4, 4]"),
       "jobs.json: client \"a\": idle_us has 2 entries, expected 1, one between two kernels"},
      {with("[4]", "[]"),
       "jobs.json: client \"a\": idle_us has 0 entries, expected 1, one between two kernels"},
      {with("[1, 1]", "[]"), "jobs.json: client \"b\": kernels is empty, expected at least one"},
      {with("1024", "-1"), "jobs.json: client \"a\": bytes is -1, " + bytes + "0 or more and below 9e15"},
      {with("1024", "1e17"),
       "jobs.json: client \"a\": bytes is 1e+17, " + bytes + "0 or more and below 9e15"},
      {with("1.5", "5e12").replace(with("1.5", "5e12").find("6}"), 1, "5e12"),
       "jobs.json: all times add up to 1e+13 µs, expected less than 104 days"},
      {with("\"a\"", "\"line\\nbreak\"").replace(0, 1, "{\"x\\ny\": 1,"), "jobs.json: unknown field x y"}};
  for (const auto& [text, line] : cases) EXPECT_EQ(error_of(text), line) << text;
  std::string many = "[8e12";  // the sum of these does not fit into 64 bits
  for (int kernel = 0; kernel < 2000; ++kernel) many += ", 8e12";
  EXPECT_EQ(error_of(with("[1, 1]", many + "]")),
            "jobs.json: all times add up to 1.6e+16 µs, expected less than 104 days");
  EXPECT_EQ(error_of(kGood, {.memory = 1023}),
            "jobs.json: client \"a\": bytes is 1024, more than the memory of 1023");
  EXPECT_EQ(error_of(kGood, {.memory = 1024}), "no error");
}

// Damages a byte, a number or a range of the file. If the file is still valid, it must be possible
// to simulate its clients.
TEST(ReadClients, AnyTextIsReadOrRefusedInOneLine) {
  const std::string pieces[] = {"-1",   "1e308", "[", "]",    "{}", "\"a\"",
                                "null", "0",     ",", "\xff", "\n", "1e12"};
  Random random(1);
  int good = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = kGood;
    for (std::int64_t changes = 1 + random.below(3); changes > 0; --changes) {
      const std::size_t at = random.below(std::ssize(text)), length = random.below(6);
      if (random.below(3) == 0)
        text[at] = static_cast<char>(random.below(256));
      else
        text.replace(at, length, random.below(2) == 0 ? "" : pieces[random.below(std::size(pieces))]);
      if (text.empty()) text = "x";
    }
    try {
      const ClientFile file = parse_clients(text, "jobs.json");
      const Workload workload(file.clients, {.memory = file.memory}, "jobs.json");
      simulate(workload, order_by_arrival(workload), Prefetch::kOn);
      ++good;
    } catch (const std::runtime_error& error) {
      const std::string line = error.what();
      ASSERT_TRUE(line.starts_with("jobs.json: ")) << line << "\n" << text;
      ASSERT_EQ(line.find('\n'), std::string::npos) << text;
    }
  }
  EXPECT_GT(good, 300) << "little is read, so little is simulated";
}

}  // namespace
}  // namespace convoy::partition::sharing
