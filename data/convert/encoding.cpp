#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "data/convert/catalogue.h"
#include "data/convert/image_header.h"

namespace convoy::data {
namespace {

// Up to this many pixels per image, reading stored pixels is faster than decoding image files, and
// the pixels take little more space.
constexpr std::int64_t kSmallPixels = 128 * 128;

// Chooses raw pixels if all images are small and have the same size, otherwise JPEG files with
// restart markers. Reads image headers one by one until the choice is certain.
class Chooser {
 public:
  // Considers one more image. Returns whether further images may still change the choice.
  bool look(const std::string& path, const Bytes& content) {
    const ImageHeader header = read_image_header(content);
    if (header.width <= 0 || header.height <= 0) return true;
    if (count_++ == 0) {
      first_ = header;
      first_path_ = path;
    }
    const bool same = header.width == first_.width && header.height == first_.height;
    if (!same)
      reason_ = fmt::format("the images differ in size ({} {}x{}, {} {}x{})", first_path_, first_.width,
                            first_.height, path, header.width, header.height);
    else if (header.width * header.height > kSmallPixels)
      reason_ = fmt::format("the images are large ({} {}x{})", path, header.width, header.height);
    return reason_.empty();
  }

  Encoding choose(Conversion& conversion) const {
    Encoding encoding;
    encoding.form = reason_.empty() ? Encoding::Form::raw : Encoding::Form::seekable;
    conversion.options.note(reason_.empty() ? fmt::format("--encode raw, as all images have {}x{} pixels",
                                                          first_.width, first_.height)
                                            : fmt::format("--encode seekable, as {}", reason_));
    return encoding;
  }

 private:
  std::int64_t count_ = 0;
  ImageHeader first_;
  std::string first_path_, reason_;
};

void look_at(const FileSource& source, const std::vector<Sample>& samples, Chooser& chooser) {
  if (source.reads_by_name()) {
    for (const Sample& sample : samples) {
      try {
        if (!chooser.look(sample.path, source.read(sample.path))) return;
      } catch (const std::runtime_error&) {
        // Ignore a file that cannot be read. The conversion itself will report it.
      }
    }
    return;
  }
  source.visit([&](const std::string& path, const FileSource::Content& content) {
    return !is_read_image(path) || is_hidden(path) || chooser.look(path, content.read({}));
  });
}

}  // namespace

Encoding Encoding::parse(const std::string& text) {
  if (text == "auto") return {};
  if (text == "keep") return {Form::keep};
  if (text == "seekable") return {Form::seekable};
  if (text == "raw") return {Form::raw};
  Encoding encoding{Form::jpeg};
  const auto fail = [&] {
    throw std::invalid_argument(
        fmt::format("found '{}', expected auto, keep, seekable, raw or jpeg:QUALITY with a quality "
                    "from 1 to 100",
                    text));
  };
  if (!text.starts_with("jpeg:")) fail();
  const char *first = text.data() + 5, *last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, encoding.quality);
  if (error != std::errc() || end != last || encoding.quality < 1 || encoding.quality > 100) fail();
  return encoding;
}

std::string Encoding::to_string() const {
  switch (form) {
    case Form::keep:
      return "keep";
    case Form::seekable:
      return "seekable";
    case Form::raw:
      return "raw";
    case Form::jpeg:
      return fmt::format("jpeg:{}", quality);
    default:
      return "auto";
  }
}

Encoding choose_encoding(Conversion& conversion, const Catalogue& catalogue) {
  const ConvertOptions& options = conversion.options;
  if (options.encoding.form != Encoding::Form::automatic) return options.encoding;
  if (options.size > 0) {
    options.note(fmt::format("--encode raw, as --size {} makes all images equally large", options.size));
    return {Encoding::Form::raw};
  }
  if (options.short_side > 0) {
    options.note(fmt::format("--encode jpeg:90, as --short-side {} leaves images of different sizes",
                             options.short_side));
    return {Encoding::Form::jpeg, 90};
  }
  Chooser chooser;
  look_at(*conversion.source, catalogue.samples, chooser);
  if (conversion.test) look_at(*conversion.test, catalogue.test_samples, chooser);
  return chooser.choose(conversion);
}

}  // namespace convoy::data
