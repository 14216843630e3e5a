export interface Package {
  readonly version: string;
  readonly repository: { readonly url: string };
  readonly homepage: string;
  readonly documentation: string;
}

export function missingAddresses(manifest: Package): string[];
export function packagePage(page: string, manifest: Package): string;
