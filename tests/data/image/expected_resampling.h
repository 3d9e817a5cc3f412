// Expected values, written by expected_resampling.py with Pillow 9.4.0 and torchvision 0.14.1.
#pragma once

#include <cstdint>

namespace convoy::data::testing {

// The result of Pillow's Image.crop(window).resize(output, BILINEAR). hash: FNV-1a of the bytes.
struct ExpectedResize {
  std::int32_t width, height, channels, x, y, window_width, window_height, output_width, output_height;
  std::uint64_t hash;
};
inline constexpr ExpectedResize kExpectedResizes[] = {
    {31, 23, 3, 0, 0, 31, 23, 12, 10, 0xAC40E947E83B35D8u},
    {31, 23, 3, 0, 0, 31, 23, 70, 50, 0xC3BFEAC95DFAA5D7u},
    {31, 23, 3, 5, 3, 17, 20, 17, 20, 0x2887F02125121EE0u},
    {31, 23, 3, 30, 22, 1, 1, 4, 4, 0xB4290267C6041655u},
    {31, 23, 3, 2, 1, 29, 2, 3, 9, 0x8D0D284EC0A72138u},
    {31, 23, 3, 0, 0, 31, 23, 1, 1, 0xAB565D19738A01ADu},
    {31, 23, 1, 4, 2, 25, 19, 28, 28, 0x0497EE559FD1F498u},
    {31, 23, 2, 4, 2, 25, 19, 28, 28, 0x284F230104DAC70Au},
    {31, 23, 4, 4, 2, 25, 19, 28, 28, 0x433F21049352EFCBu},
    {31, 23, 5, 4, 2, 25, 19, 28, 28, 0x793C530598AA1517u},
    {31, 23, 4, 0, 0, 31, 23, 9, 7, 0x2E9B593C270C7C69u},
    {31, 23, 5, 0, 0, 31, 23, 9, 7, 0x7C83D0A2681ED01Fu},
    {500, 375, 3, 50, 30, 320, 300, 224, 224, 0x92BC8C6DD2A3C984u},
    {500, 375, 3, 13, 7, 150, 190, 224, 224, 0xCA26DF6EBDFC55A0u},
    {500, 375, 3, 0, 0, 500, 375, 224, 224, 0x88650D62CC58A614u},
    {500, 375, 3, 1, 1, 499, 374, 67, 31, 0xDAB098DBB747D60Du},
    {500, 375, 1, 3, 5, 400, 300, 224, 224, 0x32E4B4CD60D8DB75u},
    {500, 375, 3, 100, 10, 224, 340, 224, 224, 0x38065469603507C5u},
    {500, 375, 3, 100, 10, 340, 224, 224, 224, 0x0CB43E865E566B30u},
    {4000, 3, 3, 0, 0, 4000, 3, 5, 224, 0xF79AB0806141DE31u},
    {3, 4000, 3, 0, 0, 3, 4000, 224, 5, 0x8B9DAC1BBC33FC2Cu},
    {4000, 3, 3, 7, 1, 3990, 1, 3, 1, 0x8DB95FC01727BAF0u},
    {65536, 2, 3, 0, 0, 65536, 2, 7, 2, 0x63AAD9FF17BD9DB7u},
    {2, 65536, 1, 0, 0, 2, 65536, 2, 7, 0x6D3EAE5BF2C3ABA2u},
    {40, 40, 3, 0, 0, 40, 40, 41, 39, 0x1A91905BA0343435u},
    {40, 40, 3, 0, 0, 40, 40, 40, 13, 0x360FB84EDF743D63u},
    {40, 40, 3, 0, 0, 40, 40, 13, 40, 0x555AFDE8F8B485D3u},
};

// The result of torchvision's transforms.Resize(resize) and CenterCrop(crop) on RGB images.
struct ExpectedTransform {
  std::int32_t width, height, resize, crop, resized_width, resized_height;
  std::uint64_t hash;
};
inline constexpr ExpectedTransform kExpectedTransforms[] = {
    {500, 375, 256, 224, 341, 256, 0x38754EF48CB64101u},  {375, 500, 256, 224, 256, 341, 0x4E8F154DA8FAC40Du},
    {500, 333, 232, 224, 348, 232, 0x7A05140C15F046A8u},  {334, 500, 232, 224, 232, 347, 0x6853B14AAB2705D7u},
    {256, 256, 256, 224, 256, 256, 0xA7CB6FD3BE698611u},  {300, 299, 256, 224, 256, 256, 0x3F8ADABABCBBBE86u},
    {1023, 641, 232, 224, 370, 232, 0x5E788F3EE5399654u}, {200, 150, 256, 224, 341, 256, 0x635F8572F8FBC8F7u},
    {97, 301, 64, 33, 64, 198, 0x56FC2A773A9111B6u},      {301, 97, 64, 33, 198, 64, 0x64ED6C73EC55B755u},
    {33, 32, 32, 32, 33, 32, 0x5E90A907B27B4F9Bu},        {640, 480, 232, 224, 309, 232, 0x2EB960DE2F56DF5Cu},
    {500, 375, 235, 224, 313, 235, 0x5DEE99BAE8825D7Cu},  {375, 499, 224, 224, 224, 298, 0xD151586B25407594u},
    {500, 375, 64, 64, 85, 64, 0x5E84BD7DB474525Fu},      {60, 99, 60, 60, 60, 99, 0x15C2D5D780AB01F9u},
    {99, 60, 60, 60, 99, 60, 0xE3FAD8A8C6F75795u},        {33, 200, 64, 64, 64, 387, 0x41873D6CD6080EEAu},
};

// Means over torchvision's draws of the share of the area and of the logarithm of the aspect:
// RandomResizedCrop on 340x256 pixels (width to height), RandomErasing on 160x224 (height to
// width).
struct ExpectedDraws {
  double area, log_aspect;
};
inline constexpr ExpectedDraws kExpectedCrops{0.43527, 0.03053};
inline constexpr ExpectedDraws kExpectedErasing{0.17057, 0.03444};

}  // namespace convoy::data::testing
