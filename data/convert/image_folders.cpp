// Reads folders of images as torchvision's ImageFolder does, with one folder per split:
//   ROOT/train/CLASS/**/FILE  and  ROOT/test|val|valid|validation/CLASS/**/FILE
// or without splits: ROOT/CLASS/**/FILE. If several folders of a path are named like a split, the
// first one is the split: in test/train/night/1.png, `train` is a class. Without splits, ROOT is at
// first the source. If ROOT holds one folder and nothing else, and all images lie in subfolders of
// this folder, then this folder becomes ROOT, and so on.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "data/convert/catalogue.h"

namespace convoy::data {
namespace {

struct Place {
  std::string root, split_folder, class_name;
  std::optional<Split> split;
};

std::string without_archive_ending(const std::string& folder) {
  return is_archive_path(folder) ? folder.substr(0, folder.find('.')) : folder;
}

std::vector<std::string> folders_of(const std::string& path) {
  std::vector<std::string> folders;
  for (std::size_t at = 0, slash = path.find('/'); slash != std::string::npos; slash = path.find('/', at)) {
    folders.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  return folders;
}

// Returns the folders that enclose the file. If `archives_are_folders`, the archive "cats.tar" with
// a folder "cats" in it counts as one folder "cats".
std::vector<std::string> folders_of(const std::string& path, bool archives_are_folders) {
  std::vector<std::string> folders = folders_of(path);
  if (!archives_are_folders) return folders;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const std::string stem = without_archive_ending(folders[i]);
    if (stem != folders[i] && i + 1 < folders.size() && folders[i + 1] == stem)
      folders.erase(folders.begin() + static_cast<std::ptrdiff_t>(i));
    folders[i] = stem;
  }
  return folders;
}

std::string joined(const std::vector<std::string>& folders, std::size_t count) {
  std::string path;
  for (std::size_t i = 0; i < count; ++i) path += (i == 0 ? "" : "/") + folders[i];
  return path;
}

std::size_t depth_of(const std::string& folder) {
  return folder.empty() ? 0 : folders_of(folder + "/").size();
}

std::string shown(const std::string& root) { return root.empty() ? "the source itself" : root; }

class FolderLayout {
 public:
  // `root` is the folder that --root gives, or "" to search for the root.
  FolderLayout(Conversion& conversion, Listing listing, bool archives_are_folders, const std::string& root)
      : conversion_(conversion),
        listing_(std::move(listing)),
        archives_(archives_are_folders),
        given_root_(root) {}

  // Returns whether any image lies in the folder of a split. If one does, sets the root and the
  // folders of the splits.
  bool has_splits() {
    require_given_root();
    std::set<std::string> roots, test_folders, train_folders;
    for (const std::string& path : listing_.files) {
      const auto place = is_image(path) ? split_place(path) : std::nullopt;
      if (!place) continue;
      roots.insert(place->root);
      (place->split == Split::train ? train_folders : test_folders).insert(place->split_folder);
    }
    if (roots.size() > 1)
      throw std::runtime_error(fmt::format(
          "{}: images in the splits of both {} and {}, expected one of them (--root FOLDER chooses)",
          conversion_.name, shown(*roots.begin()), shown(*std::next(roots.begin()))));
    if (roots.empty()) return false;
    root_ = *roots.begin();
    if (!test_folders.empty()) test_folder_ = choose(test_folders, conversion_.options.test_folder);
    if (!train_folders.empty()) train_folder_ = choose(train_folders, "");
    return true;
  }

  void find_root() {
    root_ = given_root_;
    while (given_root_.empty()) {
      std::set<std::string> below;
      bool grandchildren = true, files = false;
      for (const std::string& path : listing_.files) {
        const auto folders = is_image(path) ? folders_of(path, archives_) : std::vector<std::string>{};
        const std::size_t depth = depth_of(root_);
        if (!is_image(path) || joined(folders, std::min(depth, folders.size())) != root_) continue;
        files = files || folders.size() == depth;
        grandchildren = grandchildren && folders.size() > depth + 1;
        if (folders.size() > depth) below.insert(folders[depth]);
        if (files || below.size() > 1 || !grandchildren) return;
      }
      for (const Unreadable& item : listing_.unreadable) {
        const auto folders = folders_of(item.path + "/", archives_);
        if (is_folder_of_root(item, folders, depth_of(root_))) below.insert(folders.back());
      }
      if (below.size() > 1) return;
      if (below.empty()) return;
      root_ += (root_.empty() ? "" : "/") + *below.begin();
    }
  }

  // Calls take(path, class, split) for every JPEG or PNG image in a class folder. Counts the other
  // files as left out. Afterwards throws if some images have another format (unless skip_bad is
  // set), or if the folder of a class is unreadable or empty.
  template <typename Take>
  void images(bool splits, Take take) {
    std::map<std::string, std::int64_t> unread;
    std::string first_unread;
    for (std::string& path : listing_.files) {
      const auto place = is_hidden(path) ? std::nullopt : splits ? split_place(path) : class_place(path);
      const auto kind = unread_image_kind(path);
      if (!place || (!kind && !is_read_image(path))) {
        conversion_.left_out.add_file(path);
      } else if (!is_chosen(*place)) {
        conversion_.left_out.add(fmt::format("images in {}/", place->split_folder));
      } else if (kind) {
        if (unread.empty()) first_unread = path;
        ++unread[*kind];
      } else {
        classes_.insert(place->class_name);
        take(std::move(path), place->class_name, place->split);
      }
    }
    refuse_unread(first_unread, unread);
    refuse_unreadable(splits);
    require_no_empty_class(splits);
  }

 private:
  void require_given_root() const {
    const std::size_t depth = depth_of(given_root_);
    const auto in_root = [&](const std::string& path) {
      const auto folders = folders_of(path, archives_);
      return folders.size() >= depth && joined(folders, depth) == given_root_;
    };
    if (std::ranges::none_of(listing_.files, in_root))
      throw std::runtime_error(
          fmt::format("{}: --root {}: no files in such a folder, expected one inside the source",
                      conversion_.name, given_root_));
  }

  std::string choose(const std::set<std::string>& folders, const std::string& wanted) const {
    if (folders.contains(wanted)) return wanted;
    if (folders.size() == 1 && wanted.empty()) return *folders.begin();
    if (!wanted.empty())
      throw std::runtime_error(fmt::format("{}: --test-folder {}: no images in such a folder, expected {}",
                                           conversion_.name, wanted, *folders.begin()));
    throw std::runtime_error(
        fmt::format("{}: has both {}/ and {}/, expected one of them{}", conversion_.name, *folders.begin(),
                    *std::next(folders.begin()),
                    split_of(*folders.begin()) == Split::test ? " (--test-folder NAME chooses)" : ""));
  }

  // Returns root, split and class of a file, or nothing if the file is in no class folder of a
  // split.
  std::optional<Place> split_place(const std::string& path) const {
    const auto folders = folders_of(path, archives_);
    const std::size_t first = depth_of(given_root_);
    if (folders.size() < first || joined(folders, first) != given_root_) return std::nullopt;
    for (std::size_t i = first; i + 1 < folders.size(); ++i) {
      if (const auto split = split_of(folders[i]))
        return Place{joined(folders, i), folders[i], folders[i + 1], split};
      if (!given_root_.empty()) return std::nullopt;
    }
    return std::nullopt;
  }

  bool is_chosen(const Place& place) const {
    return !place.split || place.split_folder == train_folder_ || place.split_folder == test_folder_;
  }

  std::optional<Place> class_place(const std::string& path) const {
    const auto folders = folders_of(path, archives_);
    const std::size_t depth = depth_of(root_);
    if (folders.size() <= depth || joined(folders, depth) != root_) return std::nullopt;
    return Place{root_, "", folders[depth], std::nullopt};
  }

  void refuse_unread(const std::string& first, const std::map<std::string, std::int64_t>& unread) {
    std::string kinds;
    for (const auto& [kind, count] : unread) {
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
      if (conversion_.options.skip_bad) conversion_.left_out.add(kind, count);
      conversion_.skipped += count;
    }
    if (unread.empty() || conversion_.options.skip_bad) return;
    throw std::runtime_error(
        fmt::format("{}: {}: expected JPEG or PNG, found {} (--skip-bad leaves them out)", conversion_.name,
                    first, kinds));
  }

  // Returns whether an unreadable item may be a folder that lies `depth` folders below the root.
  bool is_folder_of_root(const Unreadable& item, const std::vector<std::string>& folders,
                         std::size_t depth) const {
    const bool folder = item.folder || extension_of(item.path).empty();
    return folder && !is_hidden(item.path) && folders.size() == depth + 1 &&
           joined(folders, depth_of(root_)) == root_;
  }

  // Throws if an unreadable item may be the folder of a class, because all labels would be wrong
  // without this class. Items outside the folders that are read are only counted as left out. The
  // remaining items are passed to Conversion::account_for().
  void refuse_unreadable(bool splits) {
    std::sort(listing_.unreadable.begin(), listing_.unreadable.end(),
              [](const Unreadable& a, const Unreadable& b) { return a.path < b.path; });
    const std::size_t depth = depth_of(root_);
    std::erase_if(listing_.unreadable, [&](const Unreadable& item) {
      const auto folders = folders_of(item.path + "/", archives_);
      const bool wanted = folders.size() > depth && joined(folders, depth) == root_ &&
                          (!splits || is_wanted_split(folders[depth]));
      if (!wanted) conversion_.leave_out(item);
      const bool trained = !splits || split_of(folders[depth]) == Split::train;
      if (wanted && trained && is_folder_of_root(item, folders, depth + (splits ? 1 : 0)))
        throw std::runtime_error(fmt::format("{}: {}: {}, expected the folder of a class", conversion_.name,
                                             item.path, item.reason));
      return !wanted;
    });
    conversion_.account_for(listing_);
  }

  bool is_wanted_split(const std::string& folder) const {
    const auto split = split_of(folder);
    const std::string& wanted = conversion_.options.test_folder;
    return split == Split::train || (split == Split::test && (wanted.empty() || folder == wanted));
  }

  // Throws if a class folder has no images. Without this class the labels of all later classes
  // would shift.
  void require_no_empty_class(bool splits) const {
    const std::string parent = splits ? root_ + (root_.empty() ? "" : "/") + train_folder_ : root_;
    for (const std::string& folder : listing_.folders) {
      const auto folders = folders_of(folder + "/x", archives_);
      if (is_hidden(folder) || folders.empty() || joined(folders, folders.size() - 1) != parent ||
          classes_.contains(folders.back()))
        continue;
      throw std::runtime_error(
          fmt::format("{}: {}: holds no images that are read, expected some in every class's folder",
                      conversion_.name, folder));
    }
  }

  Conversion& conversion_;
  Listing listing_;
  bool archives_;
  std::string given_root_, root_, train_folder_, test_folder_;
  std::set<std::string> classes_;
};

}  // namespace

Catalogue image_folders(Conversion& conversion, Listing listing) {
  FolderLayout layout(conversion, std::move(listing), conversion.archives_are_folders,
                      conversion.options.root);
  const bool splits = layout.has_splits();
  if (!splits) layout.find_root();
  CatalogueBuilder builder(conversion, CatalogueBuilder::Order::sorted);
  layout.images(splits, [&](std::string path, const std::string& class_name, std::optional<Split> split) {
    builder.add(std::move(path), class_name, split);
  });
  if (conversion.test) {
    add_test_source(conversion, builder);
  }
  return builder.finish();
}

void add_test_folders(Conversion& conversion, CatalogueBuilder& builder, Listing listing) {
  FolderLayout layout(conversion, std::move(listing), false, "");
  layout.find_root();
  layout.images(false, [&](std::string path, const std::string& class_name, std::optional<Split>) {
    builder.add_to_test_source(std::move(path), class_name);
  });
}

}  // namespace convoy::data
