// Decodes, encodes and writes the images of a catalogue.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "data/convert/catalogue.h"
#include "data/convert/image_header.h"
#include "data/convert/jpeg_encode.h"
#include "data/convert/pipeline.h"
#include "data/convert/resize.h"
#include "data/image/jpeg_huffman.h"

namespace convoy::data {
namespace {

using Form = Encoding::Form;

// The most bytes that all threads together use for images that are being converted. The remainder
// of the converter's limit of 512 MiB is for image files, the buffers of the store and the program.
constexpr std::int64_t kDecodingBytes = 384 << 20;
constexpr std::size_t kRunBytes = 1 << 20;

// Collects the pixels of successive images of a split and writes many rows in one call.
class PixelRows {
 public:
  PixelRows(Conversion& conversion, const Catalogue& catalogue)
      : conversion_(conversion), catalogue_(catalogue) {}

  void write(const ConvertedImage& image) {
    if (!writer_) {
      shape_ = image.shape;
      first_path_ = image.sample.path;
      writer_.emplace(conversion_.destination, shape_, catalogue_.classes, catalogue_.sizes);
    }
    if (image.shape != shape_)
      throw std::runtime_error(fmt::format(
          "{}: {}: {}x{} pixels, expected {}x{} as in {} (--size S resizes all, --encode keep takes any)",
          conversion_.name, image.sample.path, image.shape.width, image.shape.height, shape_.width,
          shape_.height, first_path_));
    if (image.data.size() >= kRunBytes) {
      flush();
      writer_->write(image.sample.split, image.sample.row, image.data, {&image.sample.label, 1});
      return;
    }
    const bool continues = !labels_.empty() && image.sample.split == split_ &&
                           image.sample.row == first_ + static_cast<std::int64_t>(labels_.size());
    if (!continues || pixels_.size() >= kRunBytes) flush();
    if (labels_.empty()) std::tie(split_, first_) = std::pair(image.sample.split, image.sample.row);
    pixels_.insert(pixels_.end(), image.data.begin(), image.data.end());
    labels_.push_back(image.sample.label);
  }

  void finish() {
    flush();
    writer_->finish();
  }

 private:
  void flush() {
    if (!labels_.empty()) writer_->write(split_, first_, pixels_, labels_);
    pixels_.clear();
    labels_.clear();
  }

  Conversion& conversion_;
  const Catalogue& catalogue_;
  std::optional<StoreWriter> writer_;
  ImageShape shape_;
  std::string first_path_;
  Split split_ = Split::train;
  std::int64_t first_ = 0;
  Bytes pixels_;
  std::vector<std::int32_t> labels_;
};

class ImageWriter {
 public:
  ImageWriter(Conversion& conversion, Catalogue catalogue, Encoding encoding)
      : conversion_(conversion),
        options_(conversion.options),
        catalogue_(std::move(catalogue)),
        encoding_(encoding),
        pixel_rows_(conversion, catalogue_),
        trained_(catalogue_.classes.size()),
        pipeline_(
            options_.threads, kDecodingBytes, [this](ConvertedImage& image) { convert(image); },
            [this](ConvertedImage& image) { deliver(image); }) {
    if (encoding_.form != Form::raw)
      file_rows_.emplace(conversion.destination, catalogue_.classes, catalogue_.sizes);
  }

  void run(ConvertReport& report) {
    submit_all(*conversion_.source, catalogue_.samples);
    if (conversion_.test) submit_all(*conversion_.test, catalogue_.test_samples);
    pipeline_.finish();
    require_classes();
    file_rows_ ? file_rows_->finish() : pixel_rows_.finish();
    report.train = count_[0];
    report.test = count_[1];
    report.classes = static_cast<std::int64_t>(catalogue_.classes.size());
  }

 private:
  void submit_all(const FileSource& source, const std::vector<Sample>& samples) {
    if (source.reads_by_name()) {
      for (const Sample& sample : samples) submit(sample, &source, {});
      return;
    }
    std::vector<std::size_t> by_path(samples.size());
    std::iota(by_path.begin(), by_path.end(), 0);
    std::sort(by_path.begin(), by_path.end(),
              [&](std::size_t a, std::size_t b) { return samples[a].path < samples[b].path; });
    std::size_t found_count = 0;
    std::vector<bool> taken(samples.size());
    source.visit([&](const std::string& path, const FileSource::Content& content) {
      const auto found =
          std::lower_bound(by_path.begin(), by_path.end(), path,
                           [&](std::size_t i, const std::string& p) { return samples[i].path < p; });
      if (found == by_path.end() || samples[*found].path != path) return true;
      if (taken[*found])
        throw std::runtime_error(fmt::format("{}: {} occurs twice, expected once", source.name(), path));
      taken[*found] = true;
      submit(samples[*found], nullptr, content.read([&](std::size_t bytes) { pipeline_.make_room(bytes); }));
      ++found_count;
      return true;
    });
    if (found_count < samples.size())
      throw std::runtime_error(fmt::format("{}: changed while it was read", source.name()));
  }

  void submit(const Sample& sample, const FileSource* source, Bytes content) {
    auto image = std::make_unique<ConvertedImage>();
    image->sample = sample;
    image->source = source;
    image->content = std::move(content);
    const std::size_t file = source != nullptr ? source->size(sample.path) : image->content.size();
    pipeline_.submit(std::move(image), file);
  }

  // Reads, decodes and encodes one image, on a worker thread.
  void convert(ConvertedImage& image) {
    ImageHeader header;
    bool seekable = false;
    std::int64_t need = 0;
    attempt(image, [&] {
      image.kind = "files that cannot be read";
      if (image.source != nullptr) image.content = image.source->read(image.sample.path);
      header = read_image_header(image.content);
      seekable = encoding_.form == Form::seekable && header.format == ImageHeader::Format::jpeg &&
                 seekable_bytes(header, image.content) <= kDecodingBytes;
      need = bytes_to_convert(image, header);
      if (seekable) need = std::max(need, seekable_bytes(header, image.content));
    });
    if (!pipeline_.reserve(image, need)) return;
    const std::int64_t file = std::ssize(image.content);
    if (image.error.empty()) attempt(image, [&] { decode(image, header, seekable); });
    pipeline_.keep(image, std::max<std::int64_t>(0, std::ssize(image.data) - file));
  }

  template <typename Action>
  static void attempt(ConvertedImage& image, const Action& action) {
    try {
      action();
    } catch (const std::exception& error) {
      image.error = error.what();
      if (image.error.empty()) image.error = "cannot be read";
    }
  }

  // Returns how many bytes the decoding and encoding of an image take. Throws if this exceeds
  // kDecodingBytes. The first kFileBytes bytes of the file do not count here, because the pipeline
  // already counts them.
  std::int64_t bytes_to_convert(ConvertedImage& image, const ImageHeader& header) const {
    const ImageShape shape{header.height, header.width, options_.channels};
    const bool jpeg = header.format == ImageHeader::Format::jpeg;
    const std::int64_t file = std::ssize(image.content);
    std::int64_t bytes = shape.bytes() + header.decoder_bytes + resize_bytes(shape, resize_rule());
    if (jpeg) bytes += std::min<std::int64_t>(file, JpegHuffman::kLargestScan);
    if (encoding_.form == Form::jpeg) bytes += encoder_bytes(resized_shape(shape, resize_rule()));
    bytes += std::max<std::int64_t>(0, file - ConvertPipeline::kFileBytes);
    if (bytes <= kDecodingBytes) return bytes;
    image.kind = "images too large to decode";
    throw std::runtime_error(fmt::format("{}x{} pixels, which take {} MiB to decode, expected at most {}",
                                         shape.width, shape.height, bytes >> 20, kDecodingBytes >> 20));
  }

  // Returns how much memory encode_jpeg_file() takes: 3 bytes of coefficients per pixel, and four
  // times the JPEG file, which has at most 1.5 bytes per pixel (noise at quality 100).
  static std::int64_t encoder_bytes(const ImageShape& shape) { return shape.height * shape.width * 9; }

  void decode(ConvertedImage& image, const ImageHeader& header, bool seekable) const {
    image.kind = image.content.empty()                        ? "empty files"
                 : header.format == ImageHeader::Format::jpeg ? "damaged JPEG images"
                 : header.format == ImageHeader::Format::png  ? "damaged PNG images"
                                                              : "files that are neither JPEG nor PNG";
    Image decoded = decode_image(image.content, options_.channels);
    const ImageShape original = decoded.shape;
    decoded = resize(std::move(decoded), resize_rule());
    image.shape = decoded.shape;
    if (image.sample.split == Split::train || encoding_.form == Form::raw)
      image.statistics = ChannelStatistics::of(decoded.pixels, options_.channels);
    image.data =
        seekable ? make_seekable(image, decoded) : stored(image, std::move(decoded), original, header);
    image.content = Bytes();  // frees the memory, which `= {}` would keep
    image.kind.clear();
  }

  // Returns how much memory make_seekable() takes. This is the decoded image, the larger of its
  // coefficients and a second decoded image, and four times the file, because libjpeg copies its
  // output each time it doubles the buffer.
  std::int64_t seekable_bytes(const ImageHeader& header, const Bytes& file) const {
    const std::int64_t pixels = header.height * header.width * options_.channels;
    return pixels + std::max(header.coefficient_bytes, pixels) + 4 * std::ssize(file);
  }

  // Rewrites a JPEG file with restart markers. Returns the original file if the pixels would
  // change.
  Bytes make_seekable(ConvertedImage& image, const Image& decoded) const {
    try {
      Bytes file = seekable_jpeg(image.content);
      // Compare the pixels: libjpeg smooths progressive images whose last scans are missing, but
      // not sequential ones, so the rewritten file may decode differently.
      if (decode_image(file, options_.channels).pixels == decoded.pixels) return file;
    } catch (const std::runtime_error&) {
      // Keep the original file: the sampling of its components does not allow a single scan.
    }
    return std::move(image.content);
  }

  Bytes stored(ConvertedImage& image, Image decoded, const ImageShape& original,
               const ImageHeader& header) const {
    if (encoding_.form == Form::keep || encoding_.form == Form::seekable) return std::move(image.content);
    if (encoding_.form == Form::raw) return std::move(decoded.pixels);
    Bytes encoded = encode_jpeg_file(decoded, encoding_.quality, kRestartInterval);
    const bool unchanged = decoded.shape == original && header.format == ImageHeader::Format::jpeg;
    return unchanged && image.content.size() <= encoded.size() ? std::move(image.content)
                                                               : std::move(encoded);
  }

  ResizeRule resize_rule() const { return {options_.size, options_.short_side}; }

  // Writes a converted image to the store, or counts it as left out. Runs on the thread of run(),
  // in the order in which images were submitted.
  void deliver(ConvertedImage& image) {
    const Sample& sample = image.sample;
    if (!image.error.empty()) {
      conversion_.refuse(fmt::format("{}: {}: {}", name_of_source(image), sample.path, image.error),
                         image.kind);
      if (file_rows_) file_rows_->skip(sample.split, sample.row);
    } else {
      ++count_[static_cast<std::size_t>(sample.split)];
      if (sample.split == Split::train) trained_[static_cast<std::size_t>(sample.label)] = true;
      if (file_rows_) {
        file_rows_->write(sample.split, sample.row, image.data, sample.label, image.statistics);
      } else {
        pixel_rows_.write(image);
      }
    }
    options_.progress({++delivered_, catalogue_.sizes.train + catalogue_.sizes.test});
  }

  std::string name_of_source(const ConvertedImage& image) const {
    return conversion_.test && image.sample.split == Split::test ? conversion_.test->name()
                                                                 : conversion_.name;
  }

  void require_classes() const {
    if (count_[0] + count_[1] == 0)
      throw std::runtime_error(conversion_.name + ": no image could be decoded");
    const auto lost = std::find(trained_.begin(), trained_.end(), false);
    if (lost == trained_.end()) return;
    throw std::runtime_error(
        fmt::format("{}: none of the training images of class {} could be read, expected some of every class",
                    conversion_.name, catalogue_.classes[static_cast<std::size_t>(lost - trained_.begin())]));
  }

  Conversion& conversion_;
  const ConvertOptions& options_;
  const Catalogue catalogue_;
  const Encoding encoding_;
  PixelRows pixel_rows_;
  std::optional<EncodedStoreWriter> file_rows_;
  std::vector<bool> trained_;
  std::array<std::int64_t, 2> count_{};
  std::int64_t delivered_ = 0;
  ConvertPipeline pipeline_;  // last member, so destroyed first: its threads use the other members
};

}  // namespace

void write_images(Conversion& conversion, Catalogue catalogue, ConvertReport& report) {
  report.encoding = choose_encoding(conversion, catalogue);
  ImageWriter(conversion, std::move(catalogue), report.encoding).run(report);
}

}  // namespace convoy::data
