// Converts data sets in the forms that they are published in to a store. docs/data.md describes the
// forms.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/image_set.h"

namespace convoy::data {

enum class SourceFormat : std::uint8_t { automatic, images, tiny_imagenet, webdataset, csv, cifar, idx };
const char* name_of(SourceFormat format);

struct Encoding {
  // automatic: chosen from the images. keep: the files' own bytes. seekable: JPEG files rewritten
  // with restart markers, the same pixels. jpeg: shrunk on request and written as JPEG. raw:
  // pixels, all images equally large.
  enum class Form : std::uint8_t { automatic, keep, seekable, jpeg, raw };
  Form form = Form::automatic;
  int quality = 90;  // of jpeg, 1 to 100
  // "auto", "keep", "seekable", "raw", "jpeg:QUALITY"; throws std::invalid_argument saying what was
  // found and expected.
  static Encoding parse(const std::string& text);
  std::string to_string() const;
};

struct ConvertProgress {
  std::int64_t images = 0, total = 0;  // read so far
};

struct ConvertOptions {
  SourceFormat format = SourceFormat::automatic;
  bool skip_bad = false;  // leave out what cannot be read, with a warning each, instead of failing
  Encoding encoding = {};
  int size = 0;                  // images: shorter side resized to this, centre cut out
  int short_side = 0;            // images: the shorter side shrunk to this; smaller images stay as they are
  int channels = 3;              // images: 3 or 1
  int threads = 0;               // that decode; 0: one a processor
  double test_share = 0;         // of every class's images goes to the test split; 0: the source says which
  std::string test = {};         // a second source, of the test images
  std::string test_labels = {};  // the labels of a test source without class folders
  std::string root = {};         // the folder in the source that holds train/ or the classes; "": found
  std::string test_folder = {};  // "test", "val", …: which one to take if there are several
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  std::function<void(const std::string&)> note = [](const std::string&) {};  // what was chosen, and why
  std::function<void(const ConvertProgress&)> progress = [](const ConvertProgress&) {};
};

struct ConvertReport {
  struct LeftOut {
    std::string kind;  // "hidden files"
    std::int64_t count = 0;
  };
  SourceFormat format = SourceFormat::automatic;
  Encoding encoding;
  std::int64_t train = 0, test = 0, classes = 0;
  std::vector<LeftOut> left_out;  // by kind, in alphabetical order
  std::int64_t skipped = 0;       // images among them that could not be read
};

// The source may be a folder, an archive (tar or zip, compressed in any way that libarchive knows),
// a list of archives ("shards/{000..146}.tar") or a file of such a set. Throws std::runtime_error
// naming the source and the file in it; the destination is then as it was before. Takes at most 512
// MiB of memory whatever the images, and about 100 bytes an image for their names.
ConvertReport convert(const std::string& source, const std::filesystem::path& destination,
                      const ConvertOptions& options);

}  // namespace convoy::data
