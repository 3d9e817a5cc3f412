// Helpers of the tests of data: temporary folders, expected messages, and small encoded images.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <png.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
// jpeglib.h needs FILE declared before it.
#include <jpeglib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "data/image/decode.h"
#include "data/store/writer.h"
#include "kernels/device/philox.h"

namespace convoy::data::testing {

using Bytes = std::vector<std::uint8_t>;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::path(::testing::TempDir()) /
            ("convoy_data_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::filesystem::path& file, const Bytes& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline Bytes read_bytes(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Checks that the action throws an error of one line that holds all the words.
inline void expect_error(const std::function<void()>& action, const std::vector<std::string>& words) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown, expected a message with " << words[0];
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const auto& word : words)
      EXPECT_NE(message.find(word), std::string::npos) << word << " in: " << message;
  }
}

inline Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>(kernels::philox(seed, i).word[0]);
  return bytes;
}

// Returns a smooth image, whose pixels JPEG nearly preserves. Its mean colour depends on `tone`.
inline Image smooth_image(std::int64_t height, std::int64_t width, std::int64_t channels, int tone) {
  Image image{{height, width, channels}, {}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < channels; ++c) {
        image.pixels.push_back(static_cast<std::uint8_t>((tone * 37 + y * 2 + x + c * 40) % 200 + 20));
      }
    }
  }
  return image;
}

// Returns the JPEG file that `write` writes. It begins with the image's size and its components.
inline Bytes jpeg_file(const std::function<void(jpeg_compress_struct&)>& write) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  write(jpeg);
  jpeg_finish_compress(&jpeg);
  Bytes bytes(memory, memory + size);
  jpeg_destroy_compress(&jpeg);
  std::free(memory);
  return bytes;
}

// Encodes an image as JPEG. `configure` changes libjpeg's default settings.
inline Bytes encode_jpeg(const Image& image, const std::function<void(jpeg_compress_struct&)>& configure) {
  return jpeg_file([&](jpeg_compress_struct& jpeg) {
    const int channels = static_cast<int>(image.shape.channels);
    jpeg.image_width = static_cast<JDIMENSION>(image.shape.width);
    jpeg.image_height = static_cast<JDIMENSION>(image.shape.height);
    jpeg.input_components = channels;
    jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    configure(jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
      auto* row = const_cast<std::uint8_t*>(image.pixels.data()) +
                  jpeg.next_scanline * static_cast<std::size_t>(image.shape.width * channels);
      jpeg_write_scanlines(&jpeg, &row, 1);
    }
  });
}

inline Bytes encode_jpeg(const Image& image, J_COLOR_SPACE stored_as = JCS_UNKNOWN, int quality = 95) {
  return encode_jpeg(image, [&](jpeg_compress_struct& jpeg) {
    if (stored_as != JCS_UNKNOWN) jpeg_set_colorspace(&jpeg, stored_as);
    jpeg_set_quality(&jpeg, quality, TRUE);
  });
}

inline Bytes encode_png(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.shape.width);
  png.height = static_cast<png_uint_32>(image.shape.height);
  png.format = image.shape.channels == 1   ? PNG_FORMAT_GRAY
               : image.shape.channels == 4 ? PNG_FORMAT_RGBA
                                           : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&png, nullptr, &size, 0, image.pixels.data(), 0, nullptr);
  Bytes bytes(size);
  png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

struct NamedBytes {
  std::string name;
  Bytes content;
};

// Writes a tar with the files in the given order. filter: libarchive's name of the compression,
// such as "none", "gzip" or "xz".
inline void write_tar(const std::filesystem::path& file, const std::vector<NamedBytes>& files,
                      const char* filter) {
  archive* writer = archive_write_new();
  archive_write_set_format_pax_restricted(writer);
  if (std::string(filter) != "none") archive_write_add_filter_by_name(writer, filter);
  ASSERT_EQ(archive_write_open_filename(writer, file.c_str()), ARCHIVE_OK) << archive_error_string(writer);
  for (const auto& [name, content] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
}

// Returns the content compressed with gzip as a single file.
inline Bytes gzip(const Bytes& content, const std::filesystem::path& scratch) {
  archive* writer = archive_write_new();
  archive_write_set_format_raw(writer);
  archive_write_add_filter_gzip(writer);
  archive_write_open_filename(writer, scratch.c_str());
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  archive_write_data(writer, content.data(), content.size());
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
  return read_bytes(scratch);
}

// Describes a store of random pixels, in which image i of a split has label (i + seed) % classes.
struct RandomStore {
  ImageShape shape{6, 5, 3};
  std::int64_t train = 40, test = 7;
  std::int32_t classes = 4;
  std::uint64_t seed = 1;

  Bytes pixels(Split split) const {
    return random_bytes(static_cast<std::size_t>((split == Split::train ? train : test) * shape.bytes()),
                        seed * 2 + static_cast<std::uint64_t>(split));
  }
  std::vector<std::int32_t> labels(Split split) const {
    std::vector<std::int32_t> result;
    for (std::int64_t i = 0; i < (split == Split::train ? train : test); ++i) {
      result.push_back(static_cast<std::int32_t>((i + static_cast<std::int64_t>(seed)) % classes));
    }
    return result;
  }
  std::vector<std::string> class_names() const {
    std::vector<std::string> names;
    for (int i = 0; i < classes; ++i) names.push_back("class " + std::to_string(i));
    return names;
  }
  void write(const std::filesystem::path& file) const {
    StoreWriter writer(file, shape, class_names(), {train, test});
    for (const Split split : {Split::train, Split::test})
      writer.write(split, 0, pixels(split), labels(split));
    writer.finish();
  }
};

}  // namespace convoy::data::testing
