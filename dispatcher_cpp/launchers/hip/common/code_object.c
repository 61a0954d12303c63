/* Finds a symbol's bytes in an embedded code object, which is an ordinary 64-bit ELF file. */
#include <elf.h>
#include <string.h>

#include "kernelwright/hip/common/runtime.h"

/* The section's bytes as an array of `size`-byte entries, or null if they are not all inside the image. */
static const void* section_bytes(const kw_hip_code* code, const Elf64_Shdr* section) {
  const uint64_t bytes = (uint64_t)(code->image_end - code->image);
  return section->sh_offset <= bytes && section->sh_size <= bytes - section->sh_offset
             ? code->image + section->sh_offset
             : NULL;
}

static const Elf64_Shdr* section_table(const kw_hip_code* code, uint32_t* count) {
  const uint64_t bytes = (uint64_t)(code->image_end - code->image);
  const Elf64_Ehdr* header = (const Elf64_Ehdr*)(const void*)code->image;
  if (bytes < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return NULL;
  *count = header->e_shnum;
  if (header->e_shoff > bytes || *count > (bytes - header->e_shoff) / sizeof(Elf64_Shdr)) return NULL;
  return (const Elf64_Shdr*)(const void*)(code->image + header->e_shoff);
}

static const Elf64_Sym* find_symbol(const kw_hip_code* code, const Elf64_Shdr* sections, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= count) continue;
    const Elf64_Sym* symbols = section_bytes(code, &sections[i]);
    const Elf64_Shdr* names = &sections[sections[i].sh_link];
    const char* text = section_bytes(code, names);
    if (!symbols || !text) return NULL;
    const size_t length = strlen(code->facts) + 1;
    for (uint64_t s = 0; s < sections[i].sh_size / sizeof *symbols; ++s) {
      const uint64_t at = symbols[s].st_name;
      if (at + length <= names->sh_size && memcmp(text + at, code->facts, length) == 0) return &symbols[s];
    }
  }
  return NULL;
}

int kw_hip_read_facts(const kw_hip_code* code, void* facts, size_t bytes) {
  uint32_t count = 0;
  const Elf64_Shdr* sections = section_table(code, &count);
  const Elf64_Sym* symbol = sections ? find_symbol(code, sections, count) : NULL;
  if (!symbol || symbol->st_shndx >= count || symbol->st_size != bytes) return 0;
  const Elf64_Shdr* section = &sections[symbol->st_shndx];
  const unsigned char* found = section_bytes(code, section);
  const uint64_t at = symbol->st_value - section->sh_addr;
  if (!found || at > section->sh_size || bytes > section->sh_size - at) return 0;
  memcpy(facts, found + at, bytes);
  return 1;
}
