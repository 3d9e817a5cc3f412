#include "app/sharing/service/protocol.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace convoy::app {
namespace {

using nlohmann::json;

std::string error_of(std::string_view line) { return parse_request(line).error; }

TEST(Protocol, ARequestNamesAFileOrHasItsBytes) {
  ParsedRequest request = parse_request(R"({"id": 7, "image": "/data/a \"b\".jpg", "top": 3})");
  EXPECT_EQ(request.error, "");
  EXPECT_EQ(request.id, "7");
  EXPECT_EQ(request.path, "/data/a \"b\".jpg");
  EXPECT_TRUE(request.bytes.empty());
  EXPECT_EQ(request.top, 3u);
  request = parse_request("{\"bytes\": \"/9j/4A==\"}\r");
  EXPECT_EQ(request.error, "");
  EXPECT_EQ(request.id, "null");
  EXPECT_EQ(request.path, "");
  EXPECT_EQ(request.bytes, (std::vector<std::uint8_t>{0xFF, 0xD8, 0xFF, 0xE0}));
  EXPECT_FALSE(request.top.has_value());
  EXPECT_EQ(parse_request(R"({"bytes": "QUI="})").bytes, (std::vector<std::uint8_t>{'A', 'B'}));
  EXPECT_EQ(parse_request(R"({"bytes": "QUJD"})").bytes, (std::vector<std::uint8_t>{'A', 'B', 'C'}));
}

TEST(Protocol, AnyIdComesBack) {
  for (const char* id :
       {"null", "true", "-12", "0.5", "\"käfer\"", "[1,{\"a\":[]}]", "18446744073709551615"}) {
    const ParsedRequest request = parse_request("{\"id\": " + std::string(id) + ", \"image\": \"/a\"}");
    EXPECT_EQ(request.error, "");
    EXPECT_EQ(request.id, id);
  }
  // An error must have the id, too, if the id is readable.
  const ParsedRequest wrong = parse_request(R"({"id": "x", "image": 3})");
  EXPECT_EQ(wrong.id, "\"x\"");
  EXPECT_EQ(wrong.error, "image is 3, expected a text");
  EXPECT_EQ(wrong.path, "");
}

TEST(Protocol, EveryMistakeIsNamed) {
  const std::string deep(40, '[');
  const std::array<std::pair<std::string, std::string>, 23> cases{{
      {"", "not JSON at byte 1"},
      {"{\"image\": \"/a\"", "not JSON at byte 15"},
      {"{\"image\": \"/\xff\"}", "not JSON at byte"},
      {"[1]", "found an array, expected an object"},
      {"\"a\"", "found \"a\", expected an object"},
      {"{}", "found neither image and bytes, expected one of them"},
      {R"({"image": "/a", "bytes": "QUJD"})", "found both image and bytes, expected one of them"},
      {R"({"image": "/a", "image": "/b"})", "field \"image\" is given twice"},
      {R"({"image": "/a", "labels": 1})", "unknown field \"labels\", expected id, image, bytes or top"},
      {R"({"image": ""})", "image is \"\", expected a text"},
      {R"({"image": "a.jpg"})", "image is \"a.jpg\", expected an absolute path"},
      {R"({"image": "/a\u0000b"})", "expected an absolute path"},
      {R"({"image": "/a", "top": 0})", "top is 0, expected a whole number from 1 to 16777216"},
      {R"({"image": "/a", "top": 2.5})", "top is 2.5, expected a whole number"},
      {R"({"image": "/a", "top": "3"})", "top is \"3\", expected a whole number"},
      {R"({"image": "/a", "top": 1e30})", "top is 1e+30, expected a whole number"},
      {R"({"image": "/a", "top": 1e999})", "a number is too large"},
      {R"({"bytes": ""})", "bytes is \"\", expected a text"},
      {R"({"bytes": "QUJ"})", "bytes is no base64 at character 4 of 3"},
      {R"({"bytes": "QU D"})", "bytes is no base64 at character 3 of 4"},
      {R"({"bytes": "Q==="})", "bytes is no base64 at character 2 of 4"},
      {R"({"id": )" + deep, "more than 32 levels"},
      {"{\"id\": \"" + std::string(2000, 'x') + "\", \"image\": \"/a\"}",
       "id has 2002 bytes, expected at most 1024"},
  }};
  for (const auto& [line, expected] : cases) {
    const std::string error = error_of(line);
    EXPECT_NE(error.find(expected), std::string::npos) << line << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
    EXPECT_LT(error.size(), 200u);
  }
}

TEST(Protocol, RepliesAreOneLineOfJson) {
  const std::array<RankedClass, 2> classes{{{1, 0.75f}, {0, std::numeric_limits<float>::quiet_NaN()}}};
  EXPECT_EQ(
      reply_line("7", {classes, "", 1.25}, {"cat", "a \"b\"\n\xff"}),
      "{\"id\": 7, \"classes\": [\"a \\\"b\\\"\\n\xEF\xBF\xBD\", \"cat\"], \"probabilities\": [0.75, null], "
      "\"ms\": 1.250}\n");
  EXPECT_EQ(reply_line("null", {{}, "/a\nb: no file", 3}, {}),
            "{\"id\": null, \"error\": \"/a\\nb: no file\"}\n");
}

// Lines that are almost requests: pieces of requests in any order, and requests with a few wrong
// bytes.
class RandomLines {
 public:
  std::string next() {
    static constexpr std::array kPieces{"{",
                                        "}",
                                        "[",
                                        "]",
                                        ":",
                                        ",",
                                        "\"id\"",
                                        "\"image\"",
                                        "\"bytes\"",
                                        "\"top\"",
                                        "\"/a\"",
                                        "null",
                                        "1e9",
                                        "-3",
                                        "\"\"",
                                        "\\",
                                        "\"",
                                        " ",
                                        "QUJD",
                                        "\"QUI=\"",
                                        "true",
                                        "0.1",
                                        "\xff",
                                        "\\u00",
                                        "1e999",
                                        "\r",
                                        "\"top\":",
                                        "\"id\":",
                                        "\"image\":\"/x\"",
                                        "{}"};
    std::string line;
    if (draw(3) == 0) {
      for (auto count = draw(25); count > 0; --count) line += kPieces[draw(kPieces.size())];
      return line;
    }
    line = R"({"id": [1, "a"], "bytes": "/9j/4AAQ", "top": 5})";
    if (draw(2) == 0) line = R"({"top": 2, "image": "/data/images/1.png", "id": {"a": 1.5}})";
    for (auto count = draw(4); count > 0; --count) {
      const std::size_t at = draw(line.size());
      if (draw(3) == 0)
        line.erase(at, draw(6));
      else
        line[at] = static_cast<char>(draw(256));
    }
    return line;
  }

 private:
  std::size_t draw(std::size_t below) { return below == 0 ? 0 : random_() % below; }
  std::mt19937_64 random_{20261126};
};

TEST(Protocol, RandomLinesGiveARequestOrAnError) {
  RandomLines lines;
  int accepted = 0, refused = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string line = lines.next();
    const ParsedRequest request = parse_request(line);
    const bool wrong = !request.error.empty();
    ++(wrong ? refused : accepted);
    ASSERT_EQ(request.path.empty() + request.bytes.empty(), wrong ? 2 : 1) << line;
    ASSERT_FALSE(wrong && request.top.has_value()) << line;
    const std::string reply =
        wrong ? error_line(request.id, request.error) : reply_line(request.id, {{}, "", 1}, {});
    ASSERT_EQ(reply.find('\n'), reply.size() - 1) << line;
    const json parsed = json::parse(reply, nullptr, false);
    ASSERT_TRUE(parsed.is_object() && parsed.contains("id")) << line << reply;
    ASSERT_EQ(parsed.contains("error"), wrong);
  }
  EXPECT_GT(accepted, 10'000);
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace convoy::app
