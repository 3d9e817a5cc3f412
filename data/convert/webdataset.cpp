// Reads WebDataset shards (https://github.com/webdataset/webdataset). These are tar files in which
// the files of one sample share a key, which is the file name up to its first dot. KEY.jpg or
// KEY.png is the image. KEY.cls holds the label, or KEY.json holds it as "label".
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "data/convert/catalogue.h"

namespace convoy::data {
namespace {

struct Name {
  std::string key, extension;  // for example "shard.tar/0001" and "seg.png"
};

Name name_of(const std::string& path) {
  const auto base = path.rfind('/') + 1;
  const auto dot = path.find('.', base);
  if (dot == std::string::npos) return {path, ""};
  std::string extension = path.substr(dot + 1);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return {path.substr(0, dot), extension};
}

// Returns whether the extension marks the image of a sample. An extension with a dot inside, such
// as "seg.png", marks other data.
bool is_image_extension(const std::string& extension) {
  return extension.find('.') == std::string::npos && is_image("x." + extension);
}

// Returns the split that a word in the path of the shard names, as in "imagenet-train-000.tar" or
// "val/000.tar". If several words name a split, the last one decides.
std::optional<Split> split_of_shard(const std::string& path, TestNames& test_names) {
  std::string word, name;
  const auto slash = path.rfind(".tar/");
  for (const char c : path.substr(0, slash == std::string::npos ? 0 : slash + 1)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (split_of(word)) name = word;
    word.clear();
  }
  return test_names.split_of(name);
}

std::string trimmed(std::string text) {
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0 || c == 0; };
  text.erase(std::find_if_not(text.rbegin(), text.rend(), is_space).base(), text.end());
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), is_space));
  return text;
}

// Returns the label in a .json file (if `json`) or in a .cls file, or "" if the file holds none.
std::string label_of(const Bytes& content, bool json) {
  if (!json) return trimmed(std::string(content.begin(), content.end()));
  const auto document = nlohmann::json::parse(content.begin(), content.end(), nullptr, false);
  if (!document.is_object() || !document.contains("label")) return "";
  const auto& label = document["label"];
  return label.is_string() ? label.get<std::string>() : label.is_number_integer() ? label.dump() : "";
}

bool is_number(const std::string& label) {
  return !label.empty() && label.size() < 10 &&
         std::all_of(label.begin(), label.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

class Shards {
 public:
  // `split` is the split of all samples. If empty, the name of each shard tells the split.
  Shards(Conversion& conversion, const FileSource& source, CatalogueBuilder& builder,
         std::optional<Split> split)
      : conversion_(conversion), source_(source), builder_(builder), split_(split) {}

  void read() {
    source_.visit([&](const std::string& path, const FileSource::Content& content) {
      const Name name = name_of(path);
      Sample& sample = samples_[name.key];
      if (is_hidden(path)) {
        conversion_.left_out.add_file(path);
      } else if (is_image_extension(name.extension) && may_replace(sample.image, path)) {
        if (!sample.image.empty()) conversion_.left_out.add(extension_of(sample.image) + " files");
        sample.image = path;
      } else if (name.extension == "cls" || name.extension == "json") {
        add_label(path, label_of(content.read({}), name.extension == "json"), sample);
      } else {
        conversion_.left_out.add(fmt::format(".{} files", name.extension));
      }
      finish_if_whole(name.key, sample);
      return true;
    });
    std::vector<std::string> keys;
    for (const auto& [key, sample] : samples_)
      if (!sample.done) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    for (const std::string& key : keys) refuse(key, samples_[key]);
    test_names_.require_one(source_.name());
  }

 private:
  struct Sample {
    std::string image, label;
    bool done = false;
  };

  // Returns whether the file `path` becomes the image of a sample. `image` is the sample's image so
  // far, or "" if it has none. A file of a format that is read replaces one of another format.
  static bool may_replace(const std::string& image, const std::string& path) {
    return image.empty() || (unread_image_kind(image) && is_read_image(path));
  }

  // Keeps the first label of a sample. Throws if both .cls and .json hold a number, but not the
  // same. Other labels may differ, because a .json file often names the class whose number is in
  // the .cls file.
  void add_label(const std::string& path, std::string label, Sample& sample) {
    if (is_number(sample.label) && is_number(label) && std::stol(sample.label) != std::stol(label))
      throw std::runtime_error(fmt::format("{}: {}: the label is {}, but the sample has label {} already",
                                           source_.name(), path, label, sample.label));
    if (sample.label.empty())
      sample.label = std::move(label);
    else
      conversion_.left_out.add(fmt::format(".{} files", name_of(path).extension));
  }

  void finish_if_whole(const std::string&, Sample& sample) {
    if (sample.done || sample.image.empty() || sample.label.empty() || unread_image_kind(sample.image))
      return;
    const auto split = split_ ? split_ : split_of_shard(sample.image, test_names_);
    if (split_ == Split::test)
      builder_.add_to_test_source(std::move(sample.image), sample.label);
    else
      builder_.add(std::move(sample.image), sample.label, split);
    sample = {"-", std::move(sample.label), true};
  }

  void refuse(const std::string& key, const Sample& sample) {
    // A key with neither image nor label is no sample. Its files are already counted as left out.
    if (sample.image.empty() && sample.label.empty()) return;
    if (const auto unread = unread_image_kind(sample.image))
      return conversion_.refuse(
          fmt::format("{}: {}: expected JPEG or PNG, found {}", source_.name(), sample.image, *unread),
          *unread);
    const bool no_label = sample.label.empty();
    conversion_.refuse(fmt::format("{}: {}: no {}", source_.name(), no_label ? sample.image : key,
                                   no_label ? "label, expected KEY.cls or KEY.json with \"label\""
                                            : "image, expected KEY.jpg or KEY.png"),
                       no_label ? "images without a label" : "labels without an image");
  }

  Conversion& conversion_;
  const FileSource& source_;
  CatalogueBuilder& builder_;
  std::optional<Split> split_;
  TestNames test_names_;
  std::unordered_map<std::string, Sample> samples_;
};

}  // namespace

bool is_webdataset(const Listing& listing) {
  std::set<std::string> keys;
  for (const std::string& path : listing.files) {
    const Name name = name_of(path);
    if (name.extension == "cls" && !is_hidden(path)) return true;
    // The listing is sorted, so the files of one key follow one another: .jpg, then .json, then
    // .png. So `keys` needs to hold only the key of the last such file.
    if (name.extension == "json" || is_image_extension(name.extension)) {
      const bool other =
          name.extension == "json" ? keys.contains("image " + name.key) : keys.contains("json " + name.key);
      if (other) return true;
      keys = {(name.extension == "json" ? "json " : "image ") + name.key};
    }
  }
  return false;
}

Catalogue webdataset(Conversion& conversion) {
  CatalogueBuilder builder(conversion, CatalogueBuilder::Order::as_added);
  const auto split = conversion.test ? std::optional(Split::train) : std::nullopt;
  Shards(conversion, *conversion.source, builder, split).read();
  if (conversion.test) {
    conversion.account_for(conversion.test->list());
    Shards(conversion, *conversion.test, builder, Split::test).read();
  }
  return builder.finish();
}

}  // namespace convoy::data
