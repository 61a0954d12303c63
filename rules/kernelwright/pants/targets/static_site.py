"""``static_site``: files of other targets as a folder of ``dist`` that a browser opens."""

from __future__ import annotations

from pants.engine.target import COMMON_TARGET_FIELDS, Dependencies, StringField, Target
from pants.util.strutil import help_text


class SiteRootField(StringField):
    alias = "root"
    required = True
    help = "The folder of the dependencies' files that becomes the site, from the root of the workspace."


class SiteFolderField(StringField):
    alias = "output_folder"
    required = True
    help = "Where the site goes below `dist`, such as `docs/html`."


class SiteIndexField(StringField):
    alias = "index"
    default = "index.html"
    help = "The page to open, relative to the site; `package` ends with its path."


class StaticSiteTarget(Target):
    alias = "static_site"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, SiteRootField, SiteFolderField, SiteIndexField)
    help = help_text(
        """
        The files of the targets that it depends on as a folder of `dist`, such as pages that an `adhoc_tool` makes.
        `package` writes it and prints the path of the page to open.
        """
    )
