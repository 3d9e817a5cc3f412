#include "partition/graph/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "partition/graph/brief.h"

namespace convoy::partition {
namespace {

enum class Kind { kName, kArrow, kMark, kEnd };  // kMark: one of ; , = [ ] { }

struct Token {
  Kind kind = Kind::kEnd;
  std::string_view text;
  bool quoted = false;
};

constexpr std::string_view kBlanks = " \t\r\n", kMarks = ";,=[]{}";

class DotReader {
 public:
  DotReader(std::string_view text, const std::string& where, const DotVisitor& visitor)
      : text_(text), where_(where), visitor_(visitor) {
    take();
  }

  void read() {
    if (is_word("strict")) take();
    if (!is_word("digraph")) fail("expected \"digraph {\"");
    take();
    if (now_.kind == Kind::kName) take();
    if (!is_mark('{')) fail("expected \"digraph {\"");
    take();
    while (!is_mark('}')) {
      if (now_.kind == Kind::kEnd) fail("ends before the closing brace");
      statement();
    }
    take();
    if (now_.kind != Kind::kEnd) fail("text after the closing brace");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(fmt::format("{}:{}: {}", where_, line_, what));
  }
  bool is_mark(char mark) const { return now_.kind == Kind::kMark && now_.text[0] == mark; }
  bool is_word(std::string_view word) const {
    return now_.kind == Kind::kName && !now_.quoted && now_.text == word;
  }

  void statement() {
    if (is_mark(';')) return take();
    if (is_word("subgraph") || is_mark('{')) fail("a subgraph, expected nodes and edges alone");
    const bool defaults = is_word("graph") || is_word("node") || is_word("edge");
    std::string_view from = name();
    if (is_mark('=')) {  // `name = value` sets an attribute of the whole graph
      take(), name();
      return;
    }
    if (defaults && is_mark('[')) return attributes();
    visitor_.node(line_of_name_, from);
    while (now_.kind == Kind::kArrow) {
      take();
      const std::string_view to = name();
      visitor_.node(line_of_name_, to);
      visitor_.edge(line_of_name_, from, to);
      from = to;
    }
    while (is_mark('[')) attributes();
    if (now_.kind == Kind::kName && line_ == line_of_name_)
      fail(fmt::format("expected -> or ; after \"{}\", found \"{}\"", brief(from), brief(now_.text)));
  }

  std::string_view name() {
    if (now_.kind != Kind::kName || now_.text.empty())
      fail(fmt::format("expected a node's name, found {}",
                       now_.kind == Kind::kEnd ? "the end" : "\"" + brief(now_.text) + "\""));
    const Token token = now_;
    line_of_name_ = line_;
    take();
    const std::size_t end = token.quoted ? token.text.size() : token.text.find(':');
    skip_ports(!token.quoted && token.text.ends_with(':'));
    if (end == 0) fail(fmt::format("expected a node's name, found \"{}\"", brief(token.text)));
    return token.text.substr(0, end);
  }

  // Skips ports after a node's name, for example :p1 or :"p1":n. `open` is true if a colon was
  // already read, but not the port after it.
  void skip_ports(bool open) {
    while (open || (now_.kind == Kind::kName && !now_.quoted && now_.text.starts_with(':'))) {
      if (now_.kind != Kind::kName) fail("expected a port after \":\"");
      open = !now_.quoted && now_.text.ends_with(':');
      take();
    }
  }

  void attributes() {
    take();
    while (!is_mark(']')) {
      if (now_.kind == Kind::kEnd) fail("ends before the closing bracket");
      take();
    }
    take();
  }

  void skip_blanks() {
    for (;;) {
      while (at_ < text_.size() && kBlanks.find(text_[at_]) != std::string_view::npos)
        line_ += text_[at_++] == '\n';
      const std::string_view rest = text_.substr(at_);
      const bool first_of_line = at_ == 0 || text_[at_ - 1] == '\n';
      if (rest.starts_with("//") || (first_of_line && rest.starts_with('#'))) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (rest.starts_with("/*")) {
        const std::size_t end = rest.find("*/");
        if (end == std::string_view::npos) fail("ends within a comment");
        for (const char c : rest.substr(0, end)) line_ += c == '\n';
        at_ += end + 2;
      } else {
        return;
      }
    }
  }

  void take() {
    skip_blanks();
    const std::string_view rest = text_.substr(at_);
    if (rest.empty()) {
      now_ = {};
    } else if (rest.starts_with("->")) {
      now_ = {Kind::kArrow, rest.substr(0, 2)};
      at_ += 2;
    } else if (rest.starts_with("--")) {
      fail("an undirected edge, expected ->");
    } else if (kMarks.find(rest[0]) != std::string_view::npos) {
      now_ = {Kind::kMark, rest.substr(0, 1)};
      ++at_;
    } else if (rest[0] == '<' || rest[0] == '>') {
      fail(fmt::format("expected a node's name or ->, found \"{}\"", rest[0]));
    } else {
      rest[0] == '"' ? take_quoted() : take_bare();
    }
  }

  void take_bare() {
    std::size_t end = at_;
    while (end < text_.size() && kBlanks.find(text_[end]) == std::string_view::npos &&
           kMarks.find(text_[end]) == std::string_view::npos && text_[end] != '"' &&
           !text_.substr(end).starts_with("->"))
      ++end;
    now_ = {Kind::kName, text_.substr(at_, end - at_)};
    at_ = end;
  }

  // Reads a name in quotes. Only \" is an escape; other backslashes stay in the name.
  void take_quoted() {
    const std::size_t begin = ++at_;
    bool escaped = false;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\n') fail("a name that does not end on its line");
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '"') escaped = true, ++at_;
    }
    if (at_ >= text_.size()) fail("ends within a name");
    now_ = {Kind::kName, text_.substr(begin, at_++ - begin), true};
    if (!escaped) return;
    std::string& plain = storage_.emplace_back();
    for (std::size_t i = 0; i < now_.text.size(); ++i)
      if (now_.text[i] != '\\' || i + 1 == now_.text.size() || now_.text[i + 1] != '"') plain += now_.text[i];
    now_.text = plain;
  }

  const std::string_view text_;
  const std::string& where_;
  const DotVisitor& visitor_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, line_of_name_ = 1;
  Token now_;
  std::deque<std::string> storage_;
};

}  // namespace

void read_dot(std::string_view text, const std::string& where, const DotVisitor& visitor) {
  DotReader(text, where, visitor).read();
}

}  // namespace convoy::partition
