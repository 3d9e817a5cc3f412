// Converts published data sets to a store, which is this program's file format for training images.
// docs/data.md lists the accepted forms.
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
  // The forms in which a store can hold an image:
  //   automatic  convert() chooses one of the others
  //   keep       the bytes of the file
  //   seekable   a JPEG file, rewritten with restart markers and with the same pixels
  //   jpeg       the image, shrunk if requested, as a JPEG file
  //   raw        the pixels; all images must then have the same size
  enum class Form : std::uint8_t { automatic, keep, seekable, jpeg, raw };
  Form form = Form::automatic;
  int quality = 90;  // quality of Form::jpeg, 1 to 100
  // Reads "auto", "keep", "seekable", "raw" or "jpeg:QUALITY". Throws std::invalid_argument that
  // says what was found and what was expected.
  static Encoding parse(const std::string& text);
  std::string to_string() const;
};

struct ConvertProgress {
  std::int64_t images = 0, total = 0;  // images converted so far, and all images
};

struct ConvertOptions {
  SourceFormat format = SourceFormat::automatic;
  bool skip_bad = false;  // leave out files that cannot be read, with one warning each
  Encoding encoding = {};
  // Side of the square cut out of the centre after the shorter side is resized to it; 0: no
  // resizing.
  int size = 0;
  // The most pixels of an image's shorter side. A larger image is shrunk until its shorter side has
  // this many pixels. 0: no image is shrunk.
  int short_side = 0;
  int channels = 3;  // channels of decoded images: 3 or 1
  int threads = 0;   // threads that decode; 0: one per processor
  // Fraction of each class that becomes the test split; 0: the source has a test split.
  double test_share = 0;
  std::string test = {};         // a second source that holds the test images; "": none
  std::string test_labels = {};  // file with the labels of a test source without class folders
  std::string root = {};         // folder that holds train/ or the class folders; "": search for it
  std::string test_folder = {};  // the test folder to use if the source has several, for example "val"
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  // Receives one line about each automatic choice, with the reason of the choice.
  std::function<void(const std::string&)> note = [](const std::string&) {};
  std::function<void(const ConvertProgress&)> progress = [](const ConvertProgress&) {};
};

struct ConvertReport {
  struct LeftOut {
    std::string kind;  // for example "hidden files"
    std::int64_t count = 0;
  };
  SourceFormat format = SourceFormat::automatic;
  Encoding encoding;
  std::int64_t train = 0, test = 0, classes = 0;
  std::vector<LeftOut> left_out;  // sorted by kind
  std::int64_t skipped = 0;       // images that could not be read; `left_out` counts them, too
};

// Converts a source to a store. The source may be a folder, an archive (tar or zip, compressed in
// any way that libarchive knows), a list of archives ("shards/{000..146}.tar") or a single file,
// such as a CSV file. If the conversion fails, convert() leaves the destination as it was and
// throws std::runtime_error that names the source and the file in it. Memory use is at most 512 MiB
// for images of any size, plus about 100 bytes per image for the names.
ConvertReport convert(const std::string& source, const std::filesystem::path& destination,
                      const ConvertOptions& options);

}  // namespace convoy::data
