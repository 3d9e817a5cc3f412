// Defines the fuzz targets whose inputs are files for `convoy data convert`.
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "data/convert/catalogue.h"
#include "data/convert/imagenet_devkit.h"
#include "tests/data/support.h"
#include "tests/fuzz/targets.h"

namespace convoy::data::fuzz {
namespace {

using namespace std::string_literals;
using testing::encode_jpeg;
using testing::encode_png;
using testing::smooth_image;

// Holds bytes as a file in memory. Its name has no extension.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes)
      : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 ||
        ::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      throw std::logic_error("no memory file");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string name() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Returns a temporary folder, which is in memory if the system has /dev/shm.
const std::filesystem::path& folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      std::string name =
          std::filesystem::exists("/dev/shm") ? "/dev/shm/convoy-fuzz-XXXXXX" : "/tmp/convoy-fuzz-XXXXXX";
      if (::mkdtemp(name.data()) == nullptr) throw std::logic_error("no folder");
      path = name;
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

Conversion conversion_of(const std::string& name, const ConvertOptions& options) {
  return {name, folder() / "out.h5", options, open_source(name), nullptr, false, {}, 0};
}

void read_all(const FileSource& source) {
  source.visit([](const std::string&, const FileSource::Content& content) {
    content.read({});
    return true;
  });
}

bool fuzz_archive(std::span<const std::uint8_t> input) {
  if (input.empty()) return false;
  const MemoryFile file(input);
  bool accepted = false;
  for (const bool skip_bad : {false, true}) {
    accepted |= attempt([&] {
      const ConvertOptions options{.skip_bad = skip_bad, .test_share = 0.5};
      Conversion conversion = conversion_of(file.name(), options);
      Listing listing = conversion.source->list();
      image_folders(conversion, listing);
    });
  }
  accepted |= attempt([&] {
    const auto source = open_archives(file.name());
    source->list();
    read_all(*source);
  });
  return accepted;
}

bool fuzz_webdataset(std::span<const std::uint8_t> input) {
  if (input.empty()) return false;
  const MemoryFile file(input);
  bool accepted = false;
  accepted |= attempt([&] {
    const ConvertOptions options{.skip_bad = true, .test_share = 0.5};
    Conversion conversion = conversion_of(file.name(), options);
    is_webdataset(conversion.source->list());
    webdataset(conversion);
  });
  return accepted;
}

bool fuzz_csv(std::span<const std::uint8_t> input) {
  const MemoryFile file(input);
  bool accepted = false;
  for (const double share : {0.0, 0.3}) {
    accepted |= attempt([&] {
      const ConvertOptions options{.test_share = share};
      Conversion conversion{file.name(), folder() / "out.h5", options, nullptr, nullptr, false, {}, 0};
      csv(conversion);
    });
  }
  return accepted;
}

// Splits the input at each word SPLIT. The parts become the files of an IDX or CIFAR data set.
bool fuzz_records(std::span<const std::uint8_t> input) {
  static const std::vector<std::string> kIdx{"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                             "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  static const std::vector<std::string> kCifar{"train.bin", "test.bin", "fine_label_names.txt"};
  if (input.empty()) return false;
  const bool idx = input[0] % 2 == 0;
  const auto& names = idx ? kIdx : kCifar;
  const auto set = folder() / "set";
  std::filesystem::remove_all(set);
  std::string rest(input.begin() + 1, input.end());
  for (const std::string& name : names) {
    const auto end = rest.find("SPLIT");
    testing::write_bytes(
        set / name,
        testing::Bytes(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(end, rest.size()))));
    rest = end == std::string::npos ? "" : rest.substr(end + 5);
  }
  return attempt([&] { convert(set, folder() / "out.h5", {}); });
}

bool fuzz_devkit(std::span<const std::uint8_t> input) {
  return attempt([&] { read_synsets(convoy::data::Bytes(input.begin(), input.end())); });
}

bool fuzz_convert(std::span<const std::uint8_t> input) {
  if (input.empty()) return false;
  const MemoryFile file(input);
  bool accepted = false;
  for (const double share : {0.0, 0.5}) {
    accepted |= attempt([&] {
      const ConvertOptions options{.skip_bad = true, .threads = 1, .test_share = share};
      convert(file.name(), folder() / "out.h5", options);
    });
  }
  return accepted;
}

// ---- Seeds ----

struct Entry {
  std::string name;
  Bytes content;
  char kind = 'f';  // f: file; d: folder; s: symbolic link to `content`; h: hard link to it
};

Bytes text(const std::string& words) { return {words.begin(), words.end()}; }

Bytes archive_of(const std::vector<Entry>& entries, bool zip, const char* filter = nullptr) {
  Bytes memory(1 << 20);
  std::size_t used = 0;
  archive* writer = archive_write_new();
  zip ? archive_write_set_format_zip(writer) : archive_write_set_format_ustar(writer);
  if (filter != nullptr) archive_write_add_filter_by_name(writer, filter);
  archive_write_set_bytes_in_last_block(writer, 1);
  archive_write_open_memory(writer, memory.data(), memory.size(), &used);
  for (const auto& [name, content, kind] : entries) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_perm(entry, 0755);
    archive_entry_set_filetype(entry, kind == 'd' ? AE_IFDIR : kind == 's' ? AE_IFLNK : AE_IFREG);
    const std::string target(content.begin(), content.end());
    if (kind == 's') archive_entry_set_symlink(entry, target.c_str());
    if (kind == 'h') archive_entry_set_hardlink(entry, target.c_str());
    if (kind == 'f') archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_write_header(writer, entry);
    if (kind == 'f') archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  memory.resize(used);
  return memory;
}

std::vector<Bytes> archive_seeds() {
  const Bytes png = encode_png(smooth_image(2, 2, 3, 1)), jpeg = encode_jpeg(smooth_image(2, 2, 3, 1));
  const std::vector<Entry> set{{"train/a/0.png", png},
                               {"train/b/0.jpg", jpeg},
                               {"test/a/0.png", png},
                               {"train/b/1.jpg", text("../a/0.png"), 's'},
                               {"train/b/2.jpg", text("train/a/0.png"), 'h'},
                               {"train/c", text("a"), 's'},
                               {"train/a/up", text("../.."), 's'},
                               {"notes.txt", text("x")}};
  std::vector<Entry> empty_class = set;
  empty_class.push_back({"train/d", {}, 'd'});
  std::vector<Entry> replaced = set;
  replaced.push_back({"train/a/0.png", jpeg});
  replaced.push_back({"train/b/1.jpg", png});
  replaced.push_back({"train/b/2.jpg", text("train/b/1.jpg"), 'h'});
  const std::vector<Entry> classes{{"a/0.png", png}, {"b/0.png", png}, {"../c/0.png", png}};
  return {archive_of(set, false),
          archive_of(set, false, "gzip"),
          archive_of(classes, true),
          archive_of(empty_class, false),
          archive_of(replaced, false),
          archive_of(replaced, true),
          archive_of(classes, false),
          archive_of({{"n01.tar", archive_of({{"n01_0.JPEG", jpeg}}, false)},
                      {"n02.tar", archive_of({{"n02_0.JPEG", png}}, false)}},
                     false)};
}

std::vector<Bytes> webdataset_seeds() {
  const Bytes png = encode_png(smooth_image(2, 2, 3, 1));
  return {archive_of({{"0.png", png},
                      {"0.cls", text("1")},
                      {"1.cls", text("1\n")},
                      {"1.jpg", png},
                      {"1.txt", text("x")},
                      {"2.png", png}},
                     false),
          archive_of({{"0.png", png},
                      {"0.json", text(R"({"label": 3})")},
                      {"1.json", text(R"({"label": "cat"})")},
                      {"1.png", png}},
                     false),
          archive_of({{"train.tar/0.png", png}, {"train.tar/0.cls", text("7")}}, true)};
}

std::vector<Bytes> csv_seeds() {
  return {text("\xEF\xBB\xBFpath,label,split\na,1,train\nb,1,test\n\n"),
          text("path,label\na.png,0\nb.png,1\n"),
          text("label,path,split\r\ncat,\"a \"\"b\"\".png\",train\r\ndog,\"c\n,d\",val\r\n")};
}

std::vector<Bytes> record_seeds() {
  const std::string header = "\0\0\x08\x03\0\0\0\1\0\0\0\2\0\0\0\2"s, labels = "\0\0\x08\x01\0\0\0\1"s;
  const std::string idx = header + "abcdSPLIT" + labels + std::string(1, '\1') + "SPLIT" + header +
                          "efghSPLIT" + labels + std::string(1, '\0');
  const std::string cifar = std::string(3074, '\7') + "SPLIT" + std::string(3074 * 2, '\x20') + "SPLIT";
  return {text("\2" + idx), text("\1" + cifar)};
}

// Returns three MATLAB files. One has a struct array `synsets` with one synset, one has the struct
// array without its values, and one has an empty compressed element.
std::vector<Bytes> devkit_seeds() {
  std::string head(128, ' ');
  head.replace(124, 4, "\0\1IM"s);
  const std::string matrix =
      "\6\0\0\0\x08\0\0\0\2\0\0\0\0\0\0\0\5\0\0\0\x08\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\7\0\0\0synsets\0"
      "\5\0\4\0\x10\0\0\0\1\0\0\0\x20\0\0\0ILSVRC2012_ID\0\0\0WNID\0\0\0\0\0\0\0\0\0\0\0\0"s;
  const auto element = [](char type, const std::string& data) {
    return std::string(
               {type, 0, 0, 0, static_cast<char>(data.size()), static_cast<char>(data.size() >> 8), 0, 0}) +
           data;
  };
  const std::string number =
      "\6\0\0\0\x08\0\0\0\2\0\0\0\0\0\0\0\5\0\0\0\x08\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\2\0\1\0\7\0\0\0"s;
  const std::string name = number.substr(0, 40) + "\x10\0\3\0n01\0"s;
  return {text(head + element(14, matrix + element(14, number) + element(14, name))),
          text(head + element(14, matrix)), text(head + element(15, "x\x9c\3\0\0\0\0\1"s))};
}

std::vector<Bytes> convert_seeds() {
  auto seeds = archive_seeds();
  for (const Bytes& seed : webdataset_seeds()) seeds.push_back(seed);
  return seeds;
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> all{{"image", run_image, image_seeds},
                                       {"store", run_store, store_seeds},
                                       {"archive", fuzz_archive, archive_seeds},
                                       {"webdataset", fuzz_webdataset, webdataset_seeds},
                                       {"csv", fuzz_csv, csv_seeds},
                                       {"records", fuzz_records, record_seeds},
                                       {"devkit", fuzz_devkit, devkit_seeds},
                                       {"convert", fuzz_convert, convert_seeds},
                                       {"safetensors", run_safetensors, safetensors_seeds}};
  return all;
}

}  // namespace convoy::data::fuzz
