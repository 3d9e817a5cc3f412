// The extensions of image files. An extension that is missing here makes an image a file of another
// kind, which a conversion leaves out and only counts, so the table is meant to be complete. It
// leaves out formats whose files are mostly no images, such as .pdf, .h5 and .raw.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "data/convert/catalogue.h"

namespace convoy::data {
namespace {

struct Format {
  const char* name;
  std::string_view extensions;  // separated by spaces
};

constexpr std::array kUnreadFormats{
    Format{"AVIF", ".avif .avifs"},
    Format{"BLP", ".blp"},
    Format{"BMP", ".bmp .dib"},
    Format{"BPG", ".bpg"},
    Format{"camera",
           ".3fr .arw .cr2 .cr3 .crw .dcr .dng .erf .iiq .kdc .mef .mos .mrw .nef .nrw .orf "
           ".pef .raf .rw2 .rwl .sr2 .srf .srw .x3f"},
    Format{"Cineon", ".cin .dpx"},
    Format{"DDS", ".dds"},
    Format{"DICOM", ".dcm .dicom"},
    Format{"DjVu", ".djv .djvu"},
    Format{"EPS", ".eps"},
    Format{"FITS", ".fit .fits .fts"},
    Format{"FLIC", ".flc .fli"},
    Format{"FLIF", ".flif"},
    Format{"FTEX", ".ftc .ftu"},
    Format{"GIF", ".gif"},
    Format{"GIMP", ".gbr .xcf"},
    Format{"HEIC", ".heic .heics .heif .heifs .hif"},
    Format{"icon", ".cur .icns .ico"},
    Format{"IM", ".im"},
    Format{"IPTC", ".iim"},
    Format{"JPEG 2000", ".j2c .j2k .jp2 .jpc .jpf .jpm .jpx"},
    Format{"JPEG LS", ".jls"},
    Format{"JPEG XL", ".jxl"},
    Format{"JPEG XR", ".hdp .jxr .wdp"},
    Format{"KTX", ".ktx .ktx2"},
    Format{"MNG", ".jng .mng"},
    Format{"MPO", ".mpo"},
    Format{"MSP", ".msp"},
    Format{"NIfTI", ".nii"},
    Format{"OpenEXR", ".exr"},
    Format{"Palm", ".palm"},
    Format{"PCX", ".dcx .pcx"},
    Format{"Photo CD", ".pcd"},
    Format{"Photoshop", ".psb .psd"},
    Format{"PICT", ".pct .pict"},
    Format{"Pixar", ".pxr"},
    Format{"PPM", ".pam .pbm .pfm .pgm .pnm .ppm"},
    Format{"QOI", ".qoi"},
    Format{"Radiance", ".hdr .rgbe"},
    Format{"SGI", ".bw .rgb .rgba .sgi"},
    Format{"Sun", ".ras"},
    Format{"SVG", ".svg .svgz"},
    Format{"TGA", ".icb .tga .vda .vst"},
    Format{"TIFF", ".tif .tiff"},
    Format{"WBMP", ".wbmp"},
    Format{"WebP", ".webp"},
    Format{"WMF", ".emf .wmf"},
    Format{"X11", ".xbm .xpm .xwd"},
};

std::map<std::string_view, const char*> kinds_by_extension() {
  std::map<std::string_view, const char*> kinds;
  for (const auto& [name, extensions] : kUnreadFormats) {
    for (std::size_t at = 0; at < extensions.size();) {
      const std::size_t end = std::min(extensions.find(' ', at), extensions.size());
      kinds[extensions.substr(at, end - at)] = name;
      at = end + 1;
    }
  }
  return kinds;
}

}  // namespace

bool is_read_image(const std::string& path) {
  static constexpr std::array kExtensions{".jpg",   ".jpeg", ".jpe", ".jfif", ".jif",
                                          ".pjpeg", ".pjp",  ".png", ".apng"};
  return std::ranges::find(kExtensions, extension_of(path)) != kExtensions.end();
}

std::optional<std::string> unread_image_kind(const std::string& path) {
  static const auto kinds = kinds_by_extension();
  const auto found = kinds.find(extension_of(path));
  if (found == kinds.end()) return std::nullopt;
  return std::string(found->second) + " images";
}

}  // namespace convoy::data
